/* SPDX-License-Identifier: MIT */
/*
 * Keeps: every option of every command is one row, so that what is accepted
 * and what the help says cannot differ.
 */
#include "cli/option.h"

#include <stdlib.h>
#include <string.h>

#include <nxlock.h>

#include "cli/option_run.h"
#include "cli/secret.h"

#define ON(command) (1U << (command))
#define ON_ALL (~0U)
#define ON_ACQUIRING (ON(CMD_RUN) | ON(CMD_ACQUIRE))
#define ON_LEASING (ON_ACQUIRING | ON(CMD_RENEW))

/* Longer than any lease or wait that makes sense: ten years. */
#define DURATION_MAX_MS (INT64_C(3650) * 24 * 3600 * 1000)

#define DURATION_WORDS "write 500ms, 30s, 10m, 2h or 1d; " \
                       "a bare number is seconds"

/* The number at *text in thousandths of unit, read up to its end. */
static bool number_scaled(const char **text, int64_t *thousandths)
{
    const char *at = *text;
    int64_t whole = 0;
    int64_t part = 0;
    int64_t weight = 100;

    if (*at < '0' || *at > '9')
        return false;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (whole > DURATION_MAX_MS / 10)
            return false;
        whole = whole * 10 + (*at - '0');
    }
    if (*at == '.') {
        at++;
        if (*at < '0' || *at > '9')
            return false;
        for (; *at >= '0' && *at <= '9'; at++) {
            part += (*at - '0') * weight;
            weight /= 10;
        }
    }
    *text = at;
    *thousandths = whole * 1000 + part;
    return true;
}

bool duration_parse(const char *text, int64_t *ms)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60 * 1000},
        {"h", 3600 * 1000}, {"d", 24 * 3600 * 1000}};
    int64_t thousandths;

    if (!number_scaled(&text, &thousandths))
        return false;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(text, units[i].name) != 0)
            continue;
        if (thousandths / 1000 > DURATION_MAX_MS / units[i].ms)
            return false;
        int64_t sum = thousandths / 1000 * units[i].ms +
                      thousandths % 1000 * units[i].ms / 1000;
        if (sum > DURATION_MAX_MS)
            return false;
        *ms = sum;
        return true;
    }
    return false;
}

static int set_once(struct args *args, const char *shown, const char *value)
{
    (void)shown;
    (void)value;
    args->once = true;
    args->wait_ms = 0;
    return 0;
}

int option_duration(int64_t *ms, const char *shown, const char *value)
{
    char word[DISCREET_ROOM];

    if (duration_parse(value, ms))
        return 0;
    say("%s '%s' is not a duration: " DURATION_WORDS, shown,
        discreet(word, value));
    return EXIT_USAGE;
}

static int set_wait(struct args *args, const char *shown, const char *value)
{
    args->waits = true;
    return option_duration(&args->wait_ms, shown, value);
}

static int set_ttl(struct args *args, const char *shown, const char *value)
{
    int code = option_duration(&args->ttl_ms, shown, value);

    if (code != 0)
        return code;
    if (args->ttl_ms == 0) {
        say("%s '%s' is no time at all: a lease needs some, for example "
            "%s 30s", shown, value, shown);
        return EXIT_USAGE;
    }
    args->ttl = value;
    return 0;
}

static int set_busy(struct args *args, const char *shown, const char *value)
{
    char *end;
    long code = strtol(value, &end, 10);

    if (value[0] < '0' || value[0] > '9' || *end != '\0' || code > 255) {
        char word[DISCREET_ROOM];
        say("%s '%s' is not an exit code: write a number from 0 to 255",
            shown, discreet(word, value));
        return EXIT_USAGE;
    }
    args->busy_code = (int)code;
    return 0;
}

static int set_url(struct args *args, const char *shown, const char *value)
{
    if (args->url_count == NXL_SERVERS_MAX) {
        say("%s is given more than %d times: no lock stands on so many "
            "servers", shown, NXL_SERVERS_MAX);
        return EXIT_USAGE;
    }
    args->urls[args->url_count++] = value;
    return 0;
}

static int set_name(struct args *args, const char *shown, const char *value)
{
    if (args->name != NULL) {
        char word[DISCREET_ROOM];
        say("%s '%s': the lock is '%s' already", shown, discreet(word, value),
            args->shown);
        return EXIT_USAGE;
    }
    args_name(args, value);
    return 0;
}

static int set_script(struct args *args, const char *shown, const char *value)
{
    if (args->script != NULL) {
        say("%s is given twice; write one: %s 'FIRST && SECOND'", shown,
            shown);
        return EXIT_USAGE;
    }
    if (value[0] == '\0') {
        say("%s has an empty text, which would run nothing; write %s 'CMD...'",
            shown, shown);
        return EXIT_USAGE;
    }
    args->script = value;
    return 0;
}

static int set_json(struct args *args, const char *shown, const char *value)
{
    (void)shown;
    (void)value;
    args->json = true;
    return 0;
}

static int set_verbose(struct args *args, const char *shown, const char *value)
{
    (void)shown;
    (void)value;
    args->verbose = true;
    return 0;
}

static int set_help(struct args *args, const char *shown, const char *value)
{
    (void)shown;
    (void)value;
    args->help = true;
    return 0;
}

static const struct option table[] = {
    {'n', "no-wait", NULL, "try once; do not wait for a busy lock",
        ON_ACQUIRING, set_once},
    {'w', "wait", "DUR", "wait that long at most (default: for ever)",
        ON_ACQUIRING, set_wait},
    {0, "ttl", "DUR", "lease: a crashed holder blocks that long (30s)",
        ON_LEASING, set_ttl},
    {'E', "busy-code", "CODE", "exit code for a busy lock (75)",
        ON_ACQUIRING, set_busy},
    {'c', "command", "STRING", "CMD, for /bin/sh -c; instead of -- CMD...",
        ON(CMD_RUN), set_script},
    {'u', "url", "URL", "the server; repeated: Redlock over all of them",
        ON_ALL, set_url},
    {0, "name", "NAME", "the lock, also when it starts with '-'", ON_ALL,
        set_name},
    {'v', "verbose", NULL, "say who holds a busy lock, even without a tty",
        ON_ACQUIRING, set_verbose},
    {'v', "verbose", NULL, "say what each server says, and how it is asked",
        ON(CMD_STATUS), set_verbose},
    {0, "json", NULL, "one JSON object on one line", ON(CMD_STATUS), set_json},
    {'w', "wait", "DUR", "wait that long at most (default: for ever)",
        ON(CMD_WAIT), set_wait},
    {'v', "verbose", NULL, "say who holds it, even without a tty",
        ON(CMD_WAIT), set_verbose},
    {0, "json", NULL, "a line with a JSON object for each",
        ON(CMD_LIST) | ON(CMD_DOCTOR), set_json},
    {0, "token", "TOKEN", "remove the lock held under TOKEN, no other one",
        ON(CMD_UNLOCK), option_set_token},
    {0, "force", NULL, "remove whatever lock stands there",
        ON(CMD_UNLOCK), option_set_force},
    {'y', "yes", NULL, "do not ask before --force does it",
        ON(CMD_UNLOCK), option_set_yes},
    {'h', "help", NULL, "show this", ON_ALL, set_help},
};
#define ROWS (sizeof(table) / sizeof(table[0]))

/* Row i of all, those of run among them; NULL: there are no more. */
static const struct option *row(size_t i)
{
    return i < ROWS ? &table[i] : option_run_row(i - ROWS);
}

const struct option *option_by_letter(enum command command, char letter)
{
    const struct option *option;

    for (size_t i = 0; (option = row(i)) != NULL; i++) {
        if (option->letter == letter && letter != '\0' &&
            (option->commands & ON(command)) != 0)
            break;
    }
    return option;
}

static bool same_name(const char *own, const char *name, size_t length)
{
    if (strlen(own) != length)
        return false;
    for (size_t i = 0; i < length; i++) {
        char a = own[i] == '_' ? '-' : own[i];
        char b = name[i] == '_' ? '-' : name[i];
        if (a != b)
            return false;
    }
    return true;
}

const struct option *option_by_name(
    enum command command, const char *name, size_t length)
{
    const struct option *option;

    for (size_t i = 0; (option = row(i)) != NULL; i++) {
        if (same_name(option->name, name, length) &&
            (option->commands & ON(command)) != 0)
            break;
    }
    return option;
}

const char *option_url_parameter(const char *name, size_t length)
{
    size_t count;
    const nxl_url_param *params = nxl_url_params(&count);

    for (size_t i = 0; i < count; i++) {
        if (same_name(params[i].name, name, length))
            return params[i].name;
    }
    return NULL;
}

static bool plain_in_url(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

/* Writes value with what is special in a URL encoded; three bytes each at
 * most, and a zero byte. */
static void encode(char *at, const char *value)
{
    static const char hex[] = "0123456789ABCDEF";

    for (; *value != '\0'; value++) {
        unsigned char byte = (unsigned char)*value;
        if (plain_in_url(*value)) {
            *at++ = *value;
        } else {
            *at++ = '%';
            *at++ = hex[byte >> 4];
            *at++ = hex[byte & 15];
        }
    }
    *at = '\0';
}

/* query is "name=value&...", or NULL. */
static bool has_parameter(const char *query, const char *name)
{
    size_t length = strlen(name);

    while (query != NULL) {
        if (strncmp(query, name, length) == 0 && query[length] == '=')
            return true;
        query = strchr(query, '&');
        if (query != NULL)
            query++;
    }
    return false;
}

/* What is wrong with "name=value", if the URL that it comes into is right. */
static int check_parameter(const struct args *args, const char *shown,
    const char *name, const char *parameter)
{
    /* A user needs a password, which may still come. */
    const char *host = strcmp(name, "password") == 0 ? "redis://h?"
                                                     : "redis://:x@h?";
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    nxl_client *client;
    char why[512] = "";
    char *url;

    if (has_parameter(args->query, name)) {
        say("%s is given twice; write it once", shown);
        return EXIT_USAGE;
    }
    options.errbuf = why;
    options.errbuf_size = sizeof(why);
    if (asprintf(&url, "%s%s", host, parameter) < 0)
        return EXIT_INTERNAL;
    int rc = nxl_client_new(&client, url, &options);
    free(url);
    if (rc == NXL_OK) {
        nxl_client_free(client);
        return 0;
    }
    /* "timeout_ms, byte 15 of the URL, is ...": there is no URL here. */
    const char *from = strstr(why, ", byte ");
    const char *what = from != NULL ? strstr(from, "of the URL, ") : NULL;
    say("%s: %s%s", shown, what != NULL ? name : "",
        what != NULL ? what + strlen("of the URL,") : why);
    return rc == NXL_E_URL ? EXIT_USAGE : EXIT_INTERNAL;
}

int option_add_to_query(struct args *args, const char *shown,
    const char *name, const char *value)
{
    size_t had = args->query == NULL ? 0 : strlen(args->query);
    size_t length = strlen(name);
    size_t more = length + 3 * strlen(value) + 2;
    char *parameter = malloc(more);
    char *query = realloc(args->query, had + more + 1);

    if (query != NULL)
        args->query = query;
    if (query == NULL || parameter == NULL) {
        free(parameter);
        say("out of memory");
        return EXIT_INTERNAL;
    }
    query[had] = '\0';
    memcpy(parameter, name, length);
    parameter[length] = '=';
    encode(parameter + length + 1, value);
    int code = check_parameter(args, shown, name, parameter);
    if (code == 0) {
        if (had > 0)
            query[had++] = '&';
        memcpy(query + had, parameter, strlen(parameter) + 1);
    }
    free(parameter);
    return code;
}

void option_consider(enum command command, struct nearest *nearest)
{
    size_t count;
    const nxl_url_param *params = nxl_url_params(&count);
    const struct option *option;

    for (size_t i = 0; (option = row(i)) != NULL; i++) {
        if ((option->commands & ON(command)) != 0)
            nearest_consider(nearest, option->name);
    }
    for (size_t i = 0; i < count; i++)
        nearest_consider(nearest, params[i].name);
}

static void print_row(FILE *out, char letter, const char *name,
    const char *value, const char *help)
{
    char left[64];
    char flag[48];
    size_t i;

    for (i = 0; name[i] != '\0' && i + 1 < sizeof(flag); i++)
        flag[i] = name[i] == '_' ? '-' : name[i];
    flag[i] = '\0';
    snprintf(left, sizeof(left), "%c%c%c --%s%s%s", letter ? '-' : ' ',
        letter ? letter : ' ', letter ? ',' : ' ', flag, value ? " " : "",
        value ? value : "");
    fprintf(out, "  %-24s  %s\n", left, help);
}

void option_print(enum command command, FILE *out)
{
    size_t count;
    const nxl_url_param *params = nxl_url_params(&count);
    const struct option *option;

    fputs("\noptions:\n", out);
    for (size_t i = 0; (option = row(i)) != NULL; i++) {
        if ((option->commands & ON(command)) != 0)
            print_row(out, option->letter, option->name, option->value,
                option->help);
    }
    fputs("\nthe URL's parameters, as flags:\n", out);
    for (size_t i = 0; i < count; i++)
        print_row(out, '\0', params[i].name, params[i].value, params[i].help);
}
