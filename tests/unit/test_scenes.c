/* SPDX-License-Identifier: MIT */
/*
 * Plays the scenes of every file of unit/scenes, one test each, named by its
 * file and scene; unit/scene.h says what is in these files. One that fails says
 * at which step, what was expected, and what was seen.
 */
#include "unit/scene_eligibility.h"
#include "unit/scene_parts.h"
#include "unit/scene_server.h"
#include "unit/scene_several.h"

#include <glob.h>

#define SCENES_MAX 1000

static const struct scene_machine *const machines[] = {&life_machine,
    &acquire_machine, &round_machine, &line_machine, &server_machine,
    &several_machine, &eligibility_machine};

static struct text_scene {
    char *text, *name, *steps, *does, *with;
    const struct scene_machine *machine;
    const char *failed; /* the first step after which it is another trace */
} scenes[SCENES_MAX];
static struct CMUnitTest tests[SCENES_MAX];
static size_t count;
static struct text_scene *playing;

static void play_step(char *word)
{
    char copy[64];
    snprintf(copy, sizeof(copy), "%s", word);
    step(copy);
    size_t len = strlen(scene.trace);
    bool same = !strncmp(scene.trace, playing->does, len) &&
                (len == 0 || !playing->does[len] || playing->does[len] == ' ');
    if (!same && !playing->failed)
        playing->failed = strdup(word);
}

static void play_scene(void **state)
{
    playing = *state;
    scene_begin(playing->machine, playing->with);
    each_word(playing->steps, play_step);
    if (!strcmp(scene.trace, playing->does))
        return;
    fail_msg("\n  %s\n  steps     %s\n  options   %s\n  expected  %s\n"
             "  seen      %s\n  from      %s",
        playing->name, playing->steps, playing->with, playing->does,
        scene.trace, playing->failed ? playing->failed : "the end: too little");
}

static int end_scene(void **state)
{
    (void)state;
    if (scene.machine && scene.machine->stop)
        scene.machine->stop();
    return 0;
}

/* ------------------------------------------------------------------- files */

static void broken(const char *path, const char *text)
{
    print_error("%s: not understood: %s\n", path, text);
    exit(1);
}

/* The next column, without the blanks around it. */
static char *column(char **rest)
{
    char *text = strsep(rest, "|");
    if (!text)
        return "";
    text += strspn(text, " ");
    for (size_t len = strlen(text); len > 0 && text[len - 1] == ' ';)
        text[--len] = '\0';
    return text;
}

static void add_scene(const char *path, char *text,
    const struct scene_machine *machine, const char *with)
{
    struct text_scene *s = &scenes[count];
    const char *file = strrchr(path, '/') + 1;
    char *rest = s->text = strdup(text);
    char *name = column(&rest);
    s->steps = column(&rest);
    s->does = column(&rest);
    const char *more = column(&rest);
    if (!*name) /* its steps say it */
        name = s->steps;
    if (!machine || count == SCENES_MAX || rest ||
        asprintf(&s->with, "%s %s", with, more) < 0 ||
        asprintf(&s->name, "%.*s: %s", (int)strcspn(file, "."), file, name) < 0)
        broken(path, text);
    s->machine = machine;
    tests[count++] = (struct CMUnitTest){.name = s->name,
        .test_func = play_scene,
        .teardown_func = end_scene,
        .initial_state = s};
}

static void read_line(const char *path, char *text)
{
    static const struct scene_machine *machine;
    static char with[256];
    if (!strncmp(text, "machine ", 8)) {
        machine = NULL;
        with[0] = '\0';
        for (size_t i = 0; i < sizeof(machines) / sizeof(*machines); i++)
            if (!strcmp(text + 8, machines[i]->name))
                machine = machines[i];
    } else if (!strncmp(text, "options", 7)) {
        snprintf(with, sizeof(with), "%s", text + 7);
    } else {
        add_scene(path, text, machine, with);
    }
}

static void read_file(const char *path)
{
    char *text = NULL, whole[2048] = "";
    size_t size = 0;
    FILE *file = fopen(path, "r");
    if (!file)
        broken(path, "no such file");
    for (bool more = true; more;) {
        more = getline(&text, &size, file) > 0;
        if (more)
            text[strcspn(text, "\n")] = '\0';
        bool continues = more && *text == ' ';
        if (!continues && *whole) {
            read_line(path, whole);
            *whole = '\0';
        }
        if (!more || *text == '#' || *text == '\0')
            continue;
        if (strlen(whole) + strlen(text) >= sizeof(whole))
            broken(path, text);
        strcat(whole, text);
    }
    free(text);
    fclose(file);
}

int main(void)
{
    glob_t found;
    if (glob(SCENES_DIR "/*.scenes", 0, NULL, &found) != 0)
        broken(SCENES_DIR, "no scenes");
    for (size_t i = 0; i < found.gl_pathc; i++)
        read_file(found.gl_pathv[i]);
    globfree(&found);
    int failed = test_run_group("scenes", tests, count, NULL, NULL);
    for (size_t i = 0; i < count; i++) {
        free(scenes[i].text);
        free(scenes[i].name);
        free(scenes[i].with);
        free((char *)scenes[i].failed);
    }
    return failed;
}
