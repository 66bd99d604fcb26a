/* SPDX-License-Identifier: MIT */
/*
 * The proxy of tests/support as a program: stands between PATH, a server's
 * unix socket, and its clients. Its first line says where it listens; then
 * each line of input is an order, carried out when "ok" comes back.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/proxy.h"

static enum proxy_way way_of(const char *word)
{
    return strcmp(word, "up") == 0 ? PROXY_UP : PROXY_DOWN;
}

/* ORDER [up|down|PATH] [NUMBER] [SOURCE]; false: there is no such order. */
static bool obey(
    struct proxy *p, const char *order, const char *way, int n, int source)
{
    if (strcmp(order, "delay") == 0)
        proxy_delay(p, way_of(way), n);
    else if (strcmp(order, "hold") == 0 && source > 0)
        proxy_hold_from(p, way_of(way), (uint8_t)source, n != 0);
    else if (strcmp(order, "hold") == 0)
        proxy_hold(p, way_of(way), n != 0);
    else if (strcmp(order, "drop") == 0)
        proxy_drop(p, way_of(way), n != 0);
    else if (strcmp(order, "cut-after") == 0)
        proxy_cut_after(p, way_of(way), (size_t)n);
    else if (strcmp(order, "strand") == 0)
        proxy_strand(p);
    else if (strcmp(order, "deliver") == 0)
        proxy_deliver(p);
    else if (strcmp(order, "lead") == 0)
        proxy_lead(p, way);
    else if (strcmp(order, "refuse") == 0)
        proxy_refuse(p, n != 0);
    else if (strcmp(order, "cut") == 0)
        proxy_cut(p, false);
    else if (strcmp(order, "reset") == 0)
        proxy_cut(p, true);
    else
        return false;
    return true;
}

int main(int argc, char **argv)
{
    char line[256], order[32], way[128] = "";
    if (argc != 2)
        return 2;
    struct proxy *p = proxy_start(argv[1], 0);
    printf("%s %s\n", proxy_url(p), proxy_tcp_url(p));
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        int n = 0, source = 0;
        if (sscanf(line, "%31s %127s %d %d", order, way, &n, &source) < 1 ||
            !obey(p, order, way, n, source))
            break;
        puts("ok");
        fflush(stdout);
    }
    proxy_stop(p);
    return 0;
}
