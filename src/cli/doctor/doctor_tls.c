/* SPDX-License-Identifier: MIT */
/*
 * Checks the connection to a server: whether it is encrypted, how far the
 * server's certificate is verified and how long it is valid, and whether others
 * can read the password.
 *
 * Invariant: a connection without TLS is reported only for what it discloses: a
 * password that leaves this machine.
 */
#include "cli/doctor/doctor_tls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "cli/clock.h"
#include "cli/servers/connect.h"
#include "cli/report/duration.h"
#include "cli/report/report.h"

#define DAY_S (INT64_C(24) * 3600)
#define WARN_S (14 * DAY_S)
#define FAIL_S DAY_S
#define DATE_ROOM 32

static void check_verification(struct doctor *d, const nxl_server_facts *facts)
{
    if (facts->tls_verify == NXL_TLS_VERIFY_FULL)
        diagnostic(&d->diagnostics, LEVEL_OK, "tls", NULL,
            "%s; the server's certificate and its names are verified",
            facts->tls_version);
    else if (facts->tls_verify == NXL_TLS_VERIFY_CA)
        diagnostic(&d->diagnostics, LEVEL_WARN, "tls",
            "remove verify=ca; if the certificate is for another name than the "
            "URL's host, give it that name with sni=NAME",
            "%s, but names are not verified (verify=ca): whoever has any "
            "certificate of that CA can act as this server",
            facts->tls_version);
    else
        diagnostic(&d->diagnostics, LEVEL_WARN, "tls",
            "remove verify=none (--insecure), and name the server's CA with "
            "cacert=FILE",
            "%s, but the certificate is not verified (verify=none): whoever is "
            "in between reads the password and grants locks",
            facts->tls_version);
}

/* whose is "the server's certificate", for example. */
static void check_end(
    struct doctor *d, const char *whose, int64_t ends_s, const char *remedy)
{
    time_t end = (time_t)ends_s;
    struct timespec now;
    char left[DURATION_ROOM], date[DATE_ROOM] = "";
    struct tm tm;

    if (ends_s == 0)
        return;
    timespec_get(&now, TIME_UTC);
    int64_t left_s = ends_s - (int64_t)now.tv_sec;
    if (gmtime_r(&end, &tm))
        strftime(date, sizeof(date), "%Y-%m-%d %H:%M UTC", &tm);
    duration_rough(left, llabs(left_s) * MS_PER_S);
    if (left_s <= 0)
        diagnostic(&d->diagnostics, LEVEL_FAIL, "certificate", remedy,
            "%s expired %s ago, on %s", whose, left, date);
    else if (left_s < WARN_S)
        diagnostic(&d->diagnostics, left_s < FAIL_S ? LEVEL_FAIL : LEVEL_WARN,
            "certificate", remedy, "%s expires in %s, on %s", whose, left,
            date);
    else
        diagnostic(&d->diagnostics, LEVEL_OK, "certificate", NULL,
            "%s is valid for %s, until %s", whose, left, date);
    if (left_s < FAIL_S)
        diagnostic_code(&d->diagnostics, EXIT_UNAVAILABLE);
}

/* Is it a word of the list, which blanks divide? */
static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = list; *at != '\0';) {
        at += strspn(at, " ");
        size_t here = strcspn(at, " ");
        if (here == length && strncmp(at, word, length) == 0)
            return true;
        at += here;
    }
    return false;
}

static void check_protocols(struct doctor *d, size_t server)
{
    char list[DOCTOR_FIELD];

    if (doctor_config(d, server, "tls-protocols", list) &&
        (has_word(list, "TLSv1") || has_word(list, "TLSv1.1")))
        diagnostic(&d->diagnostics, LEVEL_WARN, "tls",
            "CONFIG SET tls-protocols \"TLSv1.2 TLSv1.3\", in the server's "
            "configuration file too",
            "the server accepts TLS below 1.2 from other clients "
            "(tls-protocols %s), which is insecure",
            list);
}

/* ------------------------------------------------------- password and key */

/* Is the password of this server in the command line? */
static bool is_shown(struct doctor *d, size_t server)
{
    struct url_list urls;

    if (!d->args->password_shown ||
        !url_list_make(&urls, d->args->urls, d->args->url_count, NULL))
        return false;
    bool shown = server < urls.count && url_shows_password(urls.urls[server]);
    url_list_free(&urls);
    return shown;
}

static void check_password(
    struct doctor *d, size_t server, const nxl_server_facts *facts)
{
    if (is_shown(d, server))
        diagnostic(&d->diagnostics, LEVEL_WARN, "password",
            "use --url-file FILE, or NXLOCK_PASSWORD_FILE and a URL without "
            "the password",
            "a URL of -u has the password: other users of this machine could "
            "read it in the command line, and a shell may keep it");
    if (facts->sends_password && !facts->tls && !facts->local)
        diagnostic(&d->diagnostics, LEVEL_WARN, "password",
            "write rediss:// if the server has a port for TLS, or use a tunnel",
            "it is sent to another machine without TLS: whoever is in between "
            "can read it, and use it to remove and to acquire locks");
}

/* The library refuses a password file that others may read, but not a key. Its
 * group may be there on purpose. */
static void check_key(struct doctor *d, size_t server)
{
    struct url_list urls;
    struct stat status;
    char path[URL_VALUE_ROOM];

    if (!connect_urls(d->args, &urls))
        return;
    if (server < urls.count &&
        url_text(urls.urls[server], "key", path, sizeof(path)) &&
        stat(path, &status) == 0 && (status.st_mode & S_IRWXO) != 0)
        diagnostic(&d->diagnostics, LEVEL_WARN, "certificate",
            "chmod 600 the file",
            "every user of this machine has access to the file of key, %s "
            "(mode %03o), and can act as this client",
            path, (unsigned)status.st_mode & 0777U);
    url_list_free(&urls);
}

void doctor_tls(struct doctor *d, size_t server)
{
    nxl_server_facts facts = doctor_facts(d, server);

    if (facts.state != NXL_SERVER_UP)
        return;
    if (facts.tls) {
        check_verification(d, &facts);
        check_protocols(d, server);
        check_end(d, "the server's certificate (or its CA's)",
            facts.certificate_ends_s, "renew it at the server");
        check_end(d, "the client's certificate (cert)",
            facts.own_certificate_ends_s,
            "replace the file; nxlock reads it for each connection");
        check_key(d, server);
    }
    check_password(d, server, &facts);
}
