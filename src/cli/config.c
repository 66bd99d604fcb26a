/* SPDX-License-Identifier: MIT */
/*
 * The command config: prints the settings that are in force, and where each
 * comes from.
 *
 * Invariant: no server is contacted, and no password is printed. What is
 * printed was found by the functions that every command uses.
 */
#include "cli/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/connect.h"
#include "cli/duration.h"
#include "cli/json.h"
#include "cli/report.h"
#include "cli/secret.h"
#include "cli/settings.h"
#include "cli/source.h"
#include "cli/timing.h"
#include "cli/variables.h"

#define BUILT_IN "built in"
#define NOT_SHOWN "(not shown)"
#define WORDS_ROOM 64
#define WHERE_ROOM (SOURCE_ROOM + 64)

/* The URLs as each source leaves them; the last ones are in force. */
enum stage { STAGE_URL, STAGE_OPTIONS, STAGE_VARIABLES, STAGE_FILES, STAGES };

struct view {
    const struct args *args;
    struct url_list stages[STAGES];
    struct url_list bare; /* the same, for the output */
    bool *used;           /* owned: which settings of the files are in force */
};

/* -------------------------------------------------------------- one setting */

#define ROW "%-14s  %-34s  %s"

/* Begins an object. */
static void json_row(
    struct json *json, const char *name, const char *value, const char *from)
{
    json_begin(json, stdout);
    json_number(json, "v", JSON_VERSION);
    json_text(json, "setting", name, strlen(name));
    if (value)
        json_text(json, "value", value, strlen(value));
    else
        json_null(json, "value");
    json_text(json, "from", from, strlen(from));
}

/* server: which one it is for; NULL: all. value is NULL if there is none. */
static void print_row(const struct view *view, const char *name,
    const char *value, const char *from, const char *server)
{
    struct json json;

    if (!view->args->json) {
        printf(ROW "%s%s\n", name, value ? value : "-", from,
            server ? ", for " : "", server ? server : "");
        return;
    }
    json_row(&json, name, value, from);
    if (server)
        json_text(&json, "server", server, strlen(server));
    json_end(&json);
}

/* One that a file sets without effect. */
static void print_unused_row(
    const struct view *view, const struct setting *setting, const char *value)
{
    const char *name = setting->option->name;
    struct json json;

    if (!view->args->json) {
        printf(ROW ", not in force\n", name, value, setting->where);
        return;
    }
    json_row(&json, name, value, setting->where);
    json_true(&json, "not_in_force");
    json_end(&json);
}

static void print_file(
    const struct view *view, const struct settings_file *file)
{
    const char *state = file->text ? "read" : "absent";
    struct json json;

    if (!view->args->json) {
        printf(ROW "\n", "file", file->path, state);
        return;
    }
    json_begin(&json, stdout);
    json_number(&json, "v", JSON_VERSION);
    json_text(&json, "file", file->path, strlen(file->path));
    json_text(&json, "state", state, strlen(state));
    json_end(&json);
}

/* Makes URLs fit for the output: without passwords, and without parameters,
 * which have lines of their own. False: no memory. */
static bool bare_list(
    struct url_list *list, const char *const *texts, size_t count)
{
    char word[DISCREET_ROOM];

    if (!url_list_make(list, texts, count, NULL))
        return false;
    url_list_strip_passwords(list);
    for (size_t i = 0; i < list->count; i++) {
        char *url = list->urls[i];
        if (url_is_muddled(url))
            snprintf(url, strlen(url) + 1, "%s", discreet(word, url));
        url[strcspn(url, "?")] = '\0';
    }
    return true;
}

static void mark_used(struct view *view, const struct setting *setting)
{
    view->used[setting - view->args->settings->list] = true;
}

/* Where the i-th URL comes from. */
static const char *url_origin(struct view *view, size_t i, char *out)
{
    const struct args *args = view->args;
    const struct settings *settings = args->settings;
    size_t before = 0;

    for (size_t k = 0; k < args->url_count; k++) {
        struct url_list list;
        if (!url_list_make(&list, &args->urls[k], 1, NULL))
            break;
        before += list.count;
        url_list_free(&list);
        for (size_t s = 0; i < before && s < settings->count; s++) {
            if (settings->list[s].value != args->urls[k])
                continue;
            mark_used(view, &settings->list[s]);
            snprintf(out, WHERE_ROOM, "%s", settings->list[s].where);
            return out;
        }
    }
    for (size_t s = 0; s < settings->count; s++) {
        if (settings->list[s].where == args->url_file_source)
            mark_used(view, &settings->list[s]);
    }
    if (source_is_default(args))
        snprintf(out, WHERE_ROOM, BUILT_IN);
    else
        source_words(out, args);
    return out;
}

/* ----------------------------------------------------------------- the URLs */

/* Where the parameter of the i-th URL comes from. */
static const char *parameter_origin(struct view *view,
    const struct option *option, const char *value, size_t i, char *out)
{
    const struct settings *settings = view->args->settings;
    const char *name = option->variable;
    size_t s = 0;

    if (url_has_parameter(view->stages[STAGE_URL].urls[i], name))
        return url_origin(view, i, out);
    out[0] = '\0';
    if (url_has_parameter(view->stages[STAGE_OPTIONS].urls[i], name)) {
        snprintf(out, WHERE_ROOM, "--%s", option->name);
    } else if (url_has_parameter(view->stages[STAGE_VARIABLES].urls[i], name)) {
        snprintf(out, WHERE_ROOM, "%s", variable_for(name));
    } else {
        while (s < settings->count &&
               (settings->list[s].option != option ||
                   strcmp(settings->list[s].value, value) != 0))
            s++;
        if (s == settings->count)
            return out;
        mark_used(view, &settings->list[s]);
        snprintf(out, WHERE_ROOM, "%s", settings->list[s].where);
    }
    return out;
}

static void print_parameter(struct view *view, const struct option *option)
{
    const struct url_list *urls = &view->stages[STAGE_FILES];
    bool each = option_of_server(option) && urls->count > 1;
    char value[URL_VALUE_ROOM], from[WHERE_ROOM];
    bool any = false;

    for (size_t i = 0; i < urls->count && (each || !any); i++) {
        const char *url = urls->urls[i];
        if (!url_parameter(url, option->variable, value, sizeof(value)))
            continue;
        any = true;
        parameter_origin(view, option, value, i, from);
        print_row(
            view, option->name, value, from, each ? view->bare.urls[i] : NULL);
    }
    if (!any && strcmp(option->variable, "prefix") == 0)
        print_row(view, option->name, NULL, BUILT_IN, NULL);
}

static void print_password(struct view *view, size_t i)
{
    const struct url_list *urls = &view->stages[STAGE_FILES];
    const char *url = urls->urls[i];
    char from[WHERE_ROOM];

    if (!url_has_password(url))
        return;
    if (url_has_password(view->stages[STAGE_URL].urls[i]))
        url_origin(view, i, from);
    else
        snprintf(from, sizeof(from), "NXLOCK_PASSWORD");
    print_row(view, "password", NOT_SHOWN, from,
        urls->count > 1 ? view->bare.urls[i] : NULL);
}

static void print_urls(struct view *view)
{
    const struct url_list *urls = &view->bare;
    const struct option *option;
    char from[WHERE_ROOM];

    for (size_t i = 0; i < urls->count; i++)
        print_row(view, "url", urls->urls[i], url_origin(view, i, from), NULL);
    for (size_t i = 0; i < urls->count; i++)
        print_password(view, i);
    for (size_t i = 0; (option = option_at(CMD_CONFIG, &i));) {
        if (option->type == VALUE_PARAMETER && !option->implied)
            print_parameter(view, option);
    }
}

static bool make_stages(struct view *view)
{
    const struct args *args = view->args;

    for (enum stage stage = STAGE_URL; stage < STAGES; stage++) {
        struct url_list *list = &view->stages[stage];
        if (!url_list_make(list, args->urls, args->url_count,
                stage >= STAGE_OPTIONS ? args->query : NULL) ||
            (stage >= STAGE_VARIABLES && !variables_add(args, list)) ||
            (stage >= STAGE_FILES && !settings_add(args, list, false)))
            return false;
    }
    if (!bare_list(&view->bare, args->urls, args->url_count))
        return false;
    view->used = calloc(args->settings->count + 1, sizeof(*view->used));
    return view->used;
}

/* ---------------------------------------------------- options, and the rest */

/* What --help says in parentheses about an option that is not given. */
static const char *default_words(char *out, const struct option *option)
{
    static const char label[] = "default: ";
    const char *from = strrchr(option->help, '(');

    from = from ? from + 1 : "";
    if (strncmp(from, label, strlen(label)) == 0)
        from += strlen(label);
    snprintf(out, WORDS_ROOM, "%.*s", (int)strcspn(from, ")"), from);
    return out;
}

static void print_option(struct view *view, const struct option *option)
{
    const char *args = (const char *)view->args;
    bool is_time = option->type == VALUE_DURATION;
    int64_t ms = is_time ? *(const int64_t *)(args + option->member) : 0;
    const char *written = *(const char *const *)(args + option->written);
    const struct setting *setting = settings_origin(view->args, option);
    bool lowered = !written &&
                   option->member == offsetof(struct args, ttl_ms) &&
                   ms != DEFAULT_TTL_MS;
    char words[WORDS_ROOM], from[WORDS_ROOM];

    if (is_time && (written || lowered))
        duration_text(words, ms);
    else if (written)
        snprintf(words, sizeof(words), "%s", written);
    else
        default_words(words, option);
    if (setting)
        mark_used(view, setting);
    snprintf(from, sizeof(from), written ? "--%s" : BUILT_IN "%s",
        written   ? option->name
        : lowered ? ", lowered to max-ttl-ms"
                  : "");
    print_row(view, option->name, words, setting ? setting->where : from, NULL);
}

static void print_options(struct view *view)
{
    const struct option *option;

    for (size_t i = 0; (option = option_at(CMD_CONFIG, &i));) {
        if (option->written != 0)
            print_option(view, option);
    }
}

/* Prints what the files set without effect. False: no memory. */
static bool print_unused(struct view *view)
{
    const struct settings *settings = view->args->settings;

    for (size_t i = 0; i < settings->count; i++) {
        const struct setting *setting = &settings->list[i];
        if (view->used[i])
            continue;
        if (setting->option->type != VALUE_URL) {
            print_unused_row(view, setting, setting->value);
            continue;
        }
        struct url_list bare;
        bool made = bare_list(&bare, &setting->value, 1);
        for (size_t k = 0; made && k < bare.count; k++)
            print_unused_row(view, setting, bare.urls[k]);
        url_list_free(&bare);
        if (!made)
            return false;
    }
    return true;
}

static void print_files(const struct view *view)
{
    for (enum rank rank = RANK_USER; rank <= RANK_SYSTEM; rank++) {
        const struct settings_file *file = &view->args->settings->files[rank];
        if (file->path)
            print_file(view, file);
    }
}

/* Reports what every command would report: about the URLs and, as run does,
 * about the times. */
static int check_settings(const struct args *given)
{
    nxl_client_options options = NXL_CLIENT_OPTIONS_INIT;
    struct args args = *given;
    nxl_client *client = NULL;

    options.max_ttl_ms = args.max_ttl_ms;
    int code = connect_client(&client, &args, &options);
    nxl_client_free(client);
    if (code == 0)
        code = timing_settle(&args);
    return code != 0 ? code : timing_check(&args);
}

int subcommand_config(const struct args *args)
{
    struct view view = {.args = args};
    bool ok = make_stages(&view);
    int code = EXIT_INTERNAL;

    if (ok) {
        print_urls(&view);
        print_options(&view);
        ok = print_unused(&view);
        print_files(&view);
    }
    if (!ok)
        say("out of memory");
    else if (report_output() == EXIT_DONE)
        code = check_settings(args);
    for (enum stage stage = STAGE_URL; stage < STAGES; stage++)
        url_list_free(&view.stages[stage]);
    url_list_free(&view.bare);
    free(view.used);
    return code;
}
