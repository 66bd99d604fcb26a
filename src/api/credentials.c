/* SPDX-License-Identifier: MIT */
/*
 * Calls the program's callback for credentials, and checks what it wrote.
 *
 * Invariant: no copy of a password is left on the stack.
 */
#include "api/credentials.h"

#include <string.h>

_Static_assert(sizeof(((nxl_credentials *)0)->user) ==
                       sizeof(((struct login_answer *)0)->user) &&
                   sizeof(((nxl_credentials *)0)->password) ==
                       sizeof(((struct login_answer *)0)->password) &&
                   sizeof(((nxl_credentials *)0)->why) ==
                       sizeof(((struct login_answer *)0)->why),
    "both have the same room");

/* The program may have filled a text without ending it. */
static bool ends(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

/* Why these credentials cannot be used, or NULL. */
static const char *objection(const nxl_credentials *c)
{
    if (!ends(c->user, sizeof(c->user)))
        return "the user is not zero-terminated";
    if (!ends(c->password, sizeof(c->password)))
        return "the password is not zero-terminated";
    return c->password[0] ? NULL : "it left the password empty";
}

static bool ask(const struct login_source *source, unsigned server,
    struct login_answer *answer)
{
    nxl_credentials c = {
        .size = sizeof(c), .server = server, .sentinel = source->sentinel};
    bool ok = ((nxl_credentials_callback)source->callback)(source->arg, &c);
    const char *why = ok ? objection(&c) : NULL;

    c.why[sizeof(c.why) - 1] = '\0';
    memcpy(answer->why, c.why, sizeof(c.why));
    if (why)
        memcpy(answer->why, why, strlen(why) + 1);
    /* That of a failure too: the reason must not show it. */
    memcpy(answer->user, c.user, sizeof(c.user) - 1);
    memcpy(answer->password, c.password, sizeof(c.password) - 1);
    explicit_bzero(&c, sizeof(c));
    return ok && !why;
}

struct login_source credentials_source(
    nxl_credentials_callback callback, void *arg)
{
    return (struct login_source){
        .ask = ask, .callback = (void (*)(void))callback, .arg = arg};
}
