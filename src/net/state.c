/* SPDX-License-Identifier: MIT */
/* The state of one server: requests that have failed. */
#include "net/state.h"

void request_fail(
    struct server *s, struct request *r, enum fault fault, bool unsure)
{
    r->state = REQUEST_FAILED;
    r->fault = fault;
    r->unsure = r->cut = unsure;
    list_append(&s->failed, &r->node);
}

void request_fail_late(struct server *s, struct request *r)
{
    text_set(&s->why, "the lease ended before the release could be sent");
    request_fail(s, r, FAULT_TIMEOUT, false);
}
