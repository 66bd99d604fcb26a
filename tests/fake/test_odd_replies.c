/* SPDX-License-Identifier: MIT */
/*
 * Every verb and every query, answered by a reply of each form that it does not
 * expect: a proxy's, a foreign server's, or that of a peer that lies. Nothing
 * crashes, no such reply counts as an answer, and the error says something.
 */
#include "api/private.h"
#include "rig.h"

#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/slice.h"
#include "support/bytes.h"
#include "support/local.h"
#include "support/resp.h"

#define PEERS 32
#define TOKEN "01234567-89ab-4def-8123-456789abcdef"
#define HUGE_LEN (3 * 1024 * 1024)

/* ---------------------------------------------------------------- the peer */

/* A server that works, until odd is set: then commands that begin with the word
 * are answered with that. */
static struct peer {
    char dir[LOCAL_PATH], path[LOCAL_PATH];
    int listener, wake[2];
    pthread_t thread;
    pthread_mutex_t mutex;
    const char *word;  /* "": any but those of the handshake */
    bool busy;         /* the lock is another client's; joining works */
    struct slice odd;  /* len 0: none */
    unsigned answered; /* with it */
} peer = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static const char *const handshake[] = {
    "CLIENT", "INFO", "SCRIPT", "AUTH", "SELECT", NULL};

static bool is_shaking(const struct resp_command *c)
{
    for (size_t i = 0; handshake[i]; i++)
        if (resp_is(c, 0, handshake[i]))
            return true;
    return false;
}

/* EVALSHA sha 3 key line mark token lease channel window joins [test] */
static bool is_wait(const struct resp_command *c)
{
    return resp_is(c, 0, "EVALSHA") && resp_is(c, 2, "3") && peer.busy &&
           c->count >= 11;
}

/* What a server would say; to scripts of three keys, that work has begun. */
static struct slice good_reply(const struct resp_command *c)
{
    static const char info[] = "$50\r\nredis_version:7.0.15\r\nrole:master\r\n"
                               "aof_enabled:1\r\n\r\n";
    static const char begun[] = "*3\r\n:1\r\n:17\r\n$76\r\nonce1 begun " TOKEN
                                " 17 1 0 1 1 0 0 0 700000 - 0\r\n";
    if (resp_is(c, 0, "CLIENT"))
        return slice_of(":7\r\n");
    if (is_wait(c) && resp_is(c, 11, "1"))
        return slice_of("*4\r\n:0\r\n:1000\r\n:1\r\n:-1\r\n");
    if (is_wait(c))
        return slice_of("*3\r\n:0\r\n:1000\r\n:1\r\n");
    if (resp_is(c, 0, "EVALSHA") && resp_is(c, 2, "3"))
        return slice_of(begun);
    if (resp_is(c, 0, "SET") && peer.busy)
        return slice_of("$-1\r\n");
    if (resp_is(c, 0, "INFO"))
        return slice_of(info);
    if (resp_is(c, 0, "SCRIPT"))
        return slice_of("$1\r\nx\r\n");
    if (resp_is(c, 0, "CONFIG"))
        return slice_of("*2\r\n$11\r\nappendfsync\r\n$6\r\nalways\r\n");
    if (resp_is(c, 0, "PTTL"))
        return slice_of(":1000\r\n");
    if (resp_is(c, 0, "SET") || resp_is(c, 0, "AUTH"))
        return slice_of("+OK\r\n");
    return slice_of(":1\r\n");
}

static bool is_odd(const struct resp_command *c)
{
    if (peer.odd.len == 0)
        return false;
    if (strcmp(peer.word, "STAY") == 0)
        return is_wait(c) && resp_is(c, 10, "0");
    return *peer.word ? resp_is(c, 0, peer.word) : !is_shaking(c);
}

/* Answers the whole commands in b. False: the connection is over. */
static bool answer(int fd, struct bytes *b)
{
    struct resp_command c;
    long used;
    while ((used = resp_parse(b->data, b->len, &c)) > 0) {
        pthread_mutex_lock(&peer.mutex);
        bool odd = is_odd(&c);
        struct slice reply = odd ? peer.odd : good_reply(&c);
        peer.answered += odd;
        pthread_mutex_unlock(&peer.mutex);
        if (!local_send(fd, reply.data, reply.len))
            return false;
        memmove(b->data, b->data + used, b->len - (size_t)used);
        b->len -= (size_t)used;
    }
    return used == 0;
}

static void *serve(void *argument)
{
    struct pollfd fds[2 + PEERS] = {{.fd = peer.wake[0], .events = POLLIN},
        {.fd = peer.listener, .events = POLLIN}};
    static struct bytes read_of[2 + PEERS];
    nfds_t count = 2;
    (void)argument;
    while (poll(fds, count, -1) > 0 && !fds[0].revents) {
        for (nfds_t i = 2; i < count; i++) {
            char some[4096];
            ssize_t n =
                fds[i].revents ? read(fds[i].fd, some, sizeof(some)) : 0;
            if (!fds[i].revents)
                continue;
            if (n > 0)
                bytes_add(&read_of[i], some, (size_t)n);
            if (n > 0 && answer(fds[i].fd, &read_of[i]))
                continue;
            close(fds[i].fd);
            bytes_free(&read_of[i]);
            count--;
            fds[i] = fds[count];
            read_of[i] = read_of[count];
            read_of[count] = (struct bytes){NULL, 0, 0};
            i--;
        }
        if (fds[1].revents && count < 2 + PEERS)
            fds[count++] = (struct pollfd){
                .fd = accept(peer.listener, NULL, NULL), .events = POLLIN};
    }
    for (nfds_t i = 2; i < count; i++) {
        close(fds[i].fd);
        bytes_free(&read_of[i]);
    }
    return NULL;
}

static void peer_says(const char *word, struct slice odd, bool busy)
{
    pthread_mutex_lock(&peer.mutex);
    peer.busy = busy;
    peer.word = word;
    peer.odd = odd;
    peer.answered = 0;
    pthread_mutex_unlock(&peer.mutex);
}

static int peer_start(void **state)
{
    (void)state;
    local_dir_make(peer.dir);
    local_path(peer.path, peer.dir, "s");
    peer.listener = local_listen_unix(peer.path);
    return peer.listener < 0 || pipe(peer.wake) != 0 ||
           pthread_create(&peer.thread, NULL, serve, NULL) != 0;
}

static int peer_stop(void **state)
{
    (void)state;
    close(peer.wake[1]);
    pthread_join(peer.thread, NULL);
    close(peer.wake[0]);
    close(peer.listener);
    local_dir_remove(peer.dir);
    return 0;
}

/* -------------------------------------------------------------- the replies */

enum form {
    NIL_BULK,
    NIL_ARRAY,
    EMPTY_ARRAY,
    INTEGER,
    HUGE_INTEGER,
    EMPTY_STRING,
    STRING,
    HUGE_STRING,
    STATUS,
    NESTED,
    NILS,
    MAP,
    NIL_3,
    BOOL_3,
    DOUBLE_3,
    ERROR,
    FORMS
};
static const char *const forms[FORMS] = {
    [NIL_BULK] = "$-1\r\n",
    [NIL_ARRAY] = "*-1\r\n",
    [EMPTY_ARRAY] = "*0\r\n",
    [INTEGER] = ":-77777\r\n",
    [HUGE_INTEGER] = ":9223372036854775807\r\n",
    [EMPTY_STRING] = "$0\r\n\r\n",
    [STRING] = "$5\r\nhello\r\n",
    [STATUS] = "+HELLO\r\n",
    [NESTED] = "*2\r\n*1\r\n$1\r\n1\r\n*1\r\n*1\r\n:1\r\n",
    [NILS] = "*3\r\n$-1\r\n$-1\r\n$-1\r\n",
    [MAP] = "%1\r\n+a\r\n+b\r\n",
    [NIL_3] = "_\r\n",
    [BOOL_3] = "#t\r\n",
    [DOUBLE_3] = ",1.5\r\n",
    [ERROR] = "-ODD words\r\n",
};

static struct slice reply_of(enum form form)
{
    static char huge[HUGE_LEN];
    if (form != HUGE_STRING)
        return slice_of(forms[form]);
    int head = snprintf(huge, sizeof(huge), "$%d\r\n", HUGE_LEN - 64);
    memset(huge + head, '7', HUGE_LEN - 64);
    memcpy(huge + head + HUGE_LEN - 64, "\r\n", 2);
    return (struct slice){huge, (size_t)head + HUGE_LEN - 64 + 2};
}

/* ------------------------------------------------------- verbs and queries */

static nxl_client *client;
static nxl_lock *lock;

static int try_acquire(void)
{
    return nxl_lock_acquire(lock, 0);
}

static int wait_for_it(void)
{
    return nxl_lock_acquire(lock, 150);
}

static int extend(void)
{
    return nxl_lock_extend(lock, 0);
}

static int release(void)
{
    return nxl_lock_release(lock);
}

static int inspect(void)
{
    nxl_holder holder = NXL_HOLDER_INIT;
    return nxl_lock_inspect(lock, &holder);
}

static int adopt(void)
{
    return nxl_lock_adopt(lock, TOKEN);
}

static int break_it(void)
{
    nxl_holder holder = NXL_HOLDER_INIT;
    snprintf(holder.value, sizeof(holder.value), "somebody");
    holder.value_length = strlen(holder.value);
    return nxl_lock_break(lock, &holder);
}

static int begin(void)
{
    return nxl_once_begin(lock, NULL, 0);
}

static int look(void)
{
    nxl_once_options options = NXL_ONCE_OPTIONS_INIT;
    options.mode = NXL_ONCE_LOOK;
    return nxl_once_begin(lock, &options, 0);
}

static int tell(void)
{
    return nxl_once_tell(lock, NXL_ONCE_DONE, 0, "x", 1);
}

static int ask(void)
{
    static const char *const words[] = {"PTTL", "k"};
    struct answer *answer = NULL;
    int rc = client_ask(client, 0, 2, words, NULL, &answer);
    for (size_t i = 0; i < answer_count(answer) + 1; i++)
        answer_item(answer, i, NULL);
    answer_free(answer);
    return rc;
}

static int empty_line(void)
{
    return lock_empty_line(lock);
}

#define ANY (-1)      /* any form, or any result of an error */
#define NO_FORM (-99) /* the end */

static const struct verb_row {
    const char *name;
    int (*call)(void);
    const char *word; /* of the commands that are answered so */
    bool held, fence, keeps, busy, warm;
    /* Forms that are answers of this verb, with what they mean. */
    struct {
        int form, result;
    } answers[4];
} verbs[] = {
    {"acquire", try_acquire, "",
        .answers = {{NIL_BULK, NXL_BUSY}, {NIL_ARRAY, NXL_BUSY}, {NO_FORM, 0}}},
    {"acquire with a fencing token", try_acquire, "", .fence = true,
        .answers = {{NIL_BULK, NXL_BUSY}, {NIL_ARRAY, NXL_BUSY}, {NO_FORM, 0}}},
    {"join the line", wait_for_it, "EVALSHA", .busy = true,
        .answers = {{ANY, NXL_BUSY}}},
    {"stay in line", wait_for_it, "STAY", .busy = true,
        .answers = {{ANY, NXL_BUSY}}},
    {"wait", wait_for_it, "", .answers = {{NO_FORM, 0}}},
    {"extend", extend, "", .held = true,
        .answers = {{HUGE_INTEGER, NXL_OK}, {NO_FORM, 0}}},
    {"release", release, "", .held = true, .answers = {{NO_FORM, 0}}},
    {"release, and keep the key", release, "", .held = true, .keeps = true,
        .answers = {{NO_FORM, 0}}},
    {"inspect", inspect, "",
        .answers = {{EMPTY_ARRAY, NXL_FREE}, {NO_FORM, 0}}},
    {"adopt", adopt, "", .answers = {{EMPTY_ARRAY, NXL_LOST}, {NO_FORM, 0}}},
    {"break", break_it, "", .answers = {{NO_FORM, 0}}},
    {"begin", begin, "", .answers = {{NO_FORM, 0}}},
    {"begin, and CONFIG GET", begin, "CONFIG", .answers = {{ANY, ANY}}},
    {"begin, and CONFIG GET later", begin, "CONFIG", .warm = true,
        .answers = {{ANY, ANY}}},
    {"look", look, "", .answers = {{NO_FORM, 0}}},
    {"tell", tell, "", .held = true, .answers = {{NO_FORM, 0}}},
    {"a query", ask, "", .answers = {{ANY, NXL_OK}}},
    {"empty the line", empty_line, "", .answers = {{NO_FORM, 0}}},
    {"handshake: CLIENT ID", try_acquire, "CLIENT", .answers = {{ANY, ANY}}},
    {"handshake: INFO", try_acquire, "INFO", .answers = {{ANY, ANY}}},
    {"handshake: SCRIPT LOAD", try_acquire, "SCRIPT", .answers = {{ANY, ANY}}},
};

static bool is_error(int result)
{
    return result < 0 || result == NXL_UNKNOWN;
}

static bool is_wanted(const struct verb_row *v, enum form form, int result)
{
    for (size_t i = 0; v->answers[i].form != NO_FORM; i++) {
        if (v->answers[i].form != (int)form && v->answers[i].form != ANY)
            continue;
        return v->answers[i].result == result || v->answers[i].result == ANY ||
               (v->answers[i].form == ANY && is_error(result));
    }
    return is_error(result);
}

static void hold(const struct verb_row *v)
{
    if (v->warm) {
        assert_int_equal(nxl_lock_acquire(lock, 1000), NXL_OK);
        assert_int_equal(nxl_lock_release(lock), NXL_OK);
    }
    if (v->call == tell)
        assert_int_equal(nxl_once_begin(lock, NULL, 1000), NXL_OK);
    else if (v->held)
        assert_int_equal(nxl_lock_acquire(lock, 1000), NXL_OK);
}

static const char *words_of(const struct verb_row *v)
{
    bool of_client = v->call == ask || v->call == empty_line;
    return of_client ? nxl_client_errmsg(client) : nxl_lock_errmsg(lock);
}

/* True: as it should be. */
static bool play(const struct verb_row *v, enum form form)
{
    char url[256];
    nxl_lock_options options = NXL_LOCK_OPTIONS_INIT;
    bool shakes = strcmp(v->word, "CLIENT") == 0 ||
                  strcmp(v->word, "INFO") == 0 ||
                  strcmp(v->word, "SCRIPT") == 0;
    snprintf(url, sizeof(url), "unix://%s?timeout_ms=300", peer.path);
    peer_says("", (struct slice){NULL, 0}, false);
    client = client_of(url);
    options.ttl_ms = 30000;
    options.fence = v->fence;
    options.min_hold_ms = v->keeps ? 20000 : 0;
    assert_int_equal(nxl_lock_new(&lock, client, "k", &options), NXL_OK);
    hold(v);
    peer_says(v->word, reply_of(form), v->busy);
    int result = v->call();
    bool good = is_wanted(v, form, result);
    bool told = result == NXL_OK || result == NXL_BUSY || result == NXL_FREE ||
                *words_of(v);
    if (!good || !told || (!shakes && peer.answered == 0))
        print_error("%s, answered %.30s: %s; \"%s\"\n", v->name,
            reply_of(form).data, nxl_strerror(result), words_of(v));
    peer_says("", (struct slice){NULL, 0}, false);
    nxl_lock_free(lock);
    nxl_client_free(client);
    return good && told;
}

static void no_odd_reply_is_an_answer(void **state)
{
    unsigned wrong = 0;
    (void)state;
    for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
        for (int form = 0; form < FORMS; form++)
            wrong += !play(&verbs[i], (enum form)form);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_odd_reply_is_an_answer),
    };
    return cmocka_run_group_tests_name(
        "odd replies", tests, peer_start, peer_stop);
}
