/* SPDX-License-Identifier: MIT */
/*
 * Parses replies with hiredis, into objects that the reader owns.
 *
 * Invariant: every object handed to hiredis lies inside the struct reader
 * (the root, its items, the text they point into), so that no reply
 * allocates, none can be freed twice and none outgrows its place.
 */
#include "net/reader.h"

#include <limits.h>
#include <stdlib.h>

#include <hiredis/hiredis.h>

#include "base/text.h"

#define HEAD 512 /* bytes kept of what could not be parsed */

#if HIREDIS_MAJOR >= 1
typedef size_t array_count;
#else
typedef int array_count;
#endif

#define BROKEN UINT_MAX

struct reader {
    redisReader *parser;
    redisReplyObjectFunctions functions;
    struct reply root;
    struct reply items[REPLY_ITEMS];
    size_t text_used;
    /* What was at the parser's position when it was last called. An error
     * empties its buffer, and the first bytes show best what the peer
     * speaks. */
    size_t head_len;
    char head[HEAD];
    bool has_unread; /* something was fed after the last reply taken */
    /* How often the last reply is to be returned again; BROKEN: there are no
     * more. One test tells that neither is the case. */
    unsigned again;
    bool stuck;               /* by what was received, not by how much */
    bool starved;             /* broken for lack of memory */
    struct expected expected; /* what the present reply may be */
    struct text error;
    char text[READER_TEXT];
};

/* Where to store the object of task. A root object begins a new reply. */
static struct reply *object_for(struct reader *r, const redisReadTask *task)
{
    struct reply *reply = &r->root;

    if (!task->parent)
        r->text_used = 0;
    else
        reply = &r->items[r->expected.loose ? 0 : task->idx];
    memset(reply, 0, sizeof(*reply));
    return reply;
}

/* Makes the parser fail. hiredis then reports "Out of memory"; r->error has the
 * true cause. */
static void *refuse_reply(struct reader *r, const char *why)
{
    text_set(&r->error, why);
    return NULL;
}

/* Stores a value of a reply of any form. An error that is the whole reply is
 * reported like any other. */
static bool add_leaf(struct reader *r, const redisReadTask *task,
    struct reply *reply, struct slice value)
{
    if (!r->expected.loose || (reply->kind == REPLY_ERROR && !task->parent))
        return false;
    if (r->expected.values)
        reply_values_add(r->expected.values, value);
    return true;
}

static void *create_string(const redisReadTask *task, char *bytes, size_t len)
{
    struct reader *r = task->privdata;
    struct reply *reply = object_for(r, task);

    switch (task->type) {
    case REDIS_REPLY_STATUS:
        reply->kind = REPLY_STATUS;
        break;
    case REDIS_REPLY_ERROR:
        reply->kind = REPLY_ERROR;
        break;
    case REDIS_REPLY_STRING:
        reply->kind = REPLY_STRING;
        break;
    default:
        return refuse_reply(r, "unexpected RESP3 reply from server");
    }
    if (add_leaf(r, task, reply, (struct slice){bytes, len}))
        return reply;
    size_t room = sizeof(r->text) - r->text_used;
    if (len > room) {
        /* An element of an array may be a value that a decision depends on. */
        if (reply->kind != REPLY_STRING || task->parent)
            return refuse_reply(r, "the server's reply is longer than any this "
                                   "library asks for");
        reply->truncated = true;
        len = room;
    }

    /* The caller's bytes move as soon as this function has returned. */
    char *copy = r->text + r->text_used;
    if (len > 0)
        memcpy(copy, bytes, len);
    r->text_used += len;
    reply->bytes = (struct slice){copy, len};
    return reply;
}

static void *create_array(const redisReadTask *task, array_count count)
{
    struct reader *r = task->privdata;

    if (task->type != REDIS_REPLY_ARRAY)
        return refuse_reply(r, "unexpected RESP3 reply from server");
    if (task->parent && !r->expected.loose)
        return refuse_reply(r,
            "unexpected array inside an array in the server's "
            "reply");
    if (count > REPLY_ITEMS && !r->expected.loose)
        return refuse_reply(r, "the server's reply is an array longer than any "
                               "this library asks for");

    struct reply *reply = object_for(r, task);
    r->root.nested = task->parent != NULL;
    reply->kind = REPLY_ARRAY;
    reply->count = r->expected.loose ? 0 : (size_t)count;
    reply->items = r->items;
    return reply;
}

static void *create_integer(const redisReadTask *task, long long value)
{
    struct reader *r = task->privdata;
    struct reply *reply = object_for(r, task);

    if (task->type != REDIS_REPLY_INTEGER)
        return refuse_reply(r, "unexpected RESP3 reply from server");
    reply->kind = REPLY_INTEGER;
    reply->integer = value;
    if (r->expected.loose && r->expected.values)
        reply_values_add_number(r->expected.values, value);
    return reply;
}

static void *create_nil(const redisReadTask *task)
{
    struct reader *r = task->privdata;
    struct reply *reply = object_for(r, task);

    /* RESP2 has no nil of its own: it is a string or an array of length -1. */
    if (task->type != REDIS_REPLY_STRING && task->type != REDIS_REPLY_ARRAY)
        return refuse_reply(r, "unexpected RESP3 reply from server");
    reply->kind = REPLY_NIL;
    if (r->expected.loose && r->expected.values)
        reply_values_add_nil(r->expected.values);
    return reply;
}

#if HIREDIS_MAJOR >= 1
static void *create_double(
    const redisReadTask *task, double value, char *bytes, size_t len)
{
    (void)value;
    (void)bytes;
    (void)len;
    return refuse_reply(task->privdata, "unexpected RESP3 reply from server");
}

static void *create_bool(const redisReadTask *task, int value)
{
    (void)value;
    return refuse_reply(task->privdata, "unexpected RESP3 reply from server");
}
#endif

static void free_object(void *object)
{
    (void)object;
}

static redisReader *new_parser(struct reader *r)
{
    redisReader *parser = redisReaderCreateWithFunctions(&r->functions);

    if (parser)
        parser->privdata = r;
    return parser;
}

struct reader *reader_new(void)
{
    struct reader *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->functions.createString = create_string;
    r->functions.createArray = create_array;
    r->functions.createInteger = create_integer;
    r->functions.createNil = create_nil;
#if HIREDIS_MAJOR >= 1
    r->functions.createDouble = create_double;
    r->functions.createBool = create_bool;
#endif
    r->functions.freeObject = free_object;
    r->parser = new_parser(r);
    if (!r->parser) {
        free(r);
        return NULL;
    }
    return r;
}

void reader_free(struct reader *r)
{
    if (!r)
        return;
    redisReaderFree(r->parser);
    free(r);
}

bool reader_reset(struct reader *r)
{
    redisReader *fresh = new_parser(r);

    text_clear(&r->error);
    if (!fresh) {
        /* What the old connection left must not be taken for an answer. */
        r->again = BROKEN;
        r->starved = true;
        text_add(&r->error, "out of memory: cannot store replies");
        return false;
    }
    redisReaderFree(r->parser);
    r->parser = fresh;
    r->again = 0;
    r->stuck = r->starved = false;
    r->has_unread = false;
    r->head_len = 0;
    r->text_used = 0;
    return true;
}

/* The backlog that is allowed now. When the parser waits for the rest of a
 * string, its position is behind the type byte, at the length. Its buffer is
 * zero-terminated. */
static size_t backlog_limit(const redisReader *parser, bool loose)
{
    int at = parser->ridx;
    if (at < 0 || (at > 0 && !loose) || parser->len == parser->pos)
        return READER_BACKLOG;
#if HIREDIS_MAJOR >= 1
    int type = parser->task[at]->type;
#else
    int type = parser->rstack[at].type;
#endif
    const char *number = parser->buf + parser->pos;
    char *end;
    unsigned long long announced = strtoull(number, &end, 10);
    bool awaited = type == REDIS_REPLY_STRING && end > number && *end == '\r' &&
                   announced <= READER_STRING;
    return awaited ? READER_BACKLOG + READER_STRING : READER_BACKLOG;
}

bool reader_feed(struct reader *r, const void *bytes, size_t len)
{
    if (r->again == BROKEN)
        return false;
    if (len == 0)
        return true;

    r->has_unread = true;
    size_t backlog = r->parser->len - r->parser->pos;
    size_t most = backlog_limit(r->parser, r->expected.loose);
    if (backlog > most || len > most - backlog) {
        r->again = BROKEN;
        text_clear(&r->error);
        text_addf(&r->error,
            "more than %zu bytes from the server without a "
            "complete reply",
            most);
        return false;
    }
    if (redisReaderFeed(r->parser, bytes, len) != REDIS_OK) {
        r->again = BROKEN;
        r->starved = true;
        text_set(&r->error, "out of memory: cannot store replies");
        return false;
    }
    return true;
}

static void remember_head(struct reader *r)
{
    const redisReader *parser = r->parser;
    size_t len = parser->len - parser->pos;

    if (len > HEAD)
        len = HEAD;
    if (len > 0)
        memcpy(r->head, parser->buf + parser->pos, len);
    r->head_len = len;
}

void reader_repeat(struct reader *r, unsigned times)
{
    r->again = times;
}

static int return_again(struct reader *r, const struct reply **reply)
{
    if (r->again == BROKEN)
        return -1;
    r->again--;
    *reply = &r->root;
    return 1;
}

int reader_next(
    struct reader *r, struct expected expected, const struct reply **reply)
{
    void *object = NULL;

    r->expected = expected;
    if (r->again)
        return return_again(r, reply);
    if (!r->has_unread)
        return 0;
    remember_head(r);
    if (redisReaderGetReply(r->parser, &object) == REDIS_OK) {
        *reply = object;
        if (object)
            r->has_unread = r->parser->pos < r->parser->len;
        return object ? 1 : 0;
    }
    r->again = BROKEN;
    r->starved = r->error.len == 0 && r->parser->err == REDIS_ERR_OOM;
    r->stuck = true;
    if (r->error.len == 0) /* 'Protocol error, got "x" ...' shows a byte */
        text_add(&r->error, strstr(r->parser->errstr, "got \"")
                                ? "Protocol error"
                                : r->parser->errstr);
    return -1;
}

struct slice reader_head(const struct reader *r)
{
    return (struct slice){r->head, r->stuck ? r->head_len : 0};
}

bool reader_idle(const struct reader *r)
{
    return !r->has_unread;
}

const char *reader_error(const struct reader *r)
{
    return r->error.data;
}

bool reader_starved(const struct reader *r)
{
    return r->starved;
}
