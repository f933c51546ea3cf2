/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * linkem - an emulated link between two network namespaces, for kernels
 * without netem.
 *
 * usage: linkem NETNS_A DEV_A NETNS_B DEV_B DELAY_MS LOSS_PERCENT RATE_MBIT
 *
 * Makes one TUN device in each namespace (/run/netns/NAME) and carries packets
 * between them, each way delayed by DELAY_MS, dropped with probability
 * LOSS_PERCENT and paced to RATE_MBIT (0: not limited) with a queue of 1000
 * packets.  Prints "ready" when the devices are there; they go when it ends.
 * Build: cc -O2 -o linkem linkem.c
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define SLOTS 65536 /* a power of two */
#define MAXPKT 65536

struct packet {
    double due;
    int len;
    unsigned char *data;
};

static struct queue {
    struct packet *slot;
    unsigned head, tail;
    double link_free; /* when the paced link has sent what it holds */
} queue[2];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int open_tun(const char *netns, const char *dev)
{
    char path[512];
    struct ifreq req;
    int ns, fd;

    snprintf(path, sizeof path, "/run/netns/%s", netns);
    ns = open(path, O_RDONLY | O_CLOEXEC);
    if (ns < 0 || setns(ns, CLONE_NEWNET) != 0) {
        perror(path);
        exit(1);
    }
    close(ns);
    fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    memset(&req, 0, sizeof req);
    req.ifr_flags = IFF_TUN | IFF_NO_PI;
    snprintf(req.ifr_name, sizeof req.ifr_name, "%s", dev);
    if (fd < 0 || ioctl(fd, TUNSETIFF, &req) != 0) {
        perror(dev);
        exit(1);
    }
    return fd;
}

int main(int argc, char **argv)
{
    static unsigned char buf[MAXPKT];
    double delay, loss, rate; /* seconds, probability, bytes per second */
    int fd[2], i, k, len;

    if (argc != 8) {
        fprintf(stderr, "usage: linkem NETNS_A DEV_A NETNS_B DEV_B DELAY_MS LOSS_PERCENT RATE_MBIT\n");
        return 2;
    }
    fd[0] = open_tun(argv[1], argv[2]);
    fd[1] = open_tun(argv[3], argv[4]);
    delay = atof(argv[5]) / 1e3;
    loss = atof(argv[6]) / 100;
    rate = atof(argv[7]) * 1e6 / 8;
    for (i = 0; i < 2; i++) {
        queue[i].slot = calloc(SLOTS, sizeof *queue[i].slot);
        if (queue[i].slot == NULL)
            return 1;
    }
    srand48(1); /* the same losses every time */
    puts("ready");
    fflush(stdout);

    for (;;) {
        struct pollfd pfd[2] = { { fd[0], POLLIN, 0 }, { fd[1], POLLIN, 0 } };
        struct timespec wait;
        double t = now(), next = t + 1;

        for (i = 0; i < 2; i++) {
            struct queue *q = &queue[i];

            while (q->head != q->tail) {
                struct packet *p = &q->slot[q->head % SLOTS];

                if (p->due > t) {
                    if (p->due < next)
                        next = p->due;
                    break;
                }
                if (write(fd[!i], p->data, (size_t)p->len) < 0) {
                    /* the other end is down or full: lost, as on a wire */
                }
                free(p->data);
                q->head++;
            }
        }
        t = next - now();
        if (t < 0)
            t = 0;
        wait.tv_sec = (time_t)t;
        wait.tv_nsec = (long)((t - (double)wait.tv_sec) * 1e9);
        ppoll(pfd, 2, &wait, NULL);
        t = now();
        for (i = 0; i < 2; i++) {
            struct queue *q = &queue[i];

            if (!(pfd[i].revents & POLLIN))
                continue;
            for (k = 0; k < 64 && (len = (int)read(fd[i], buf, sizeof buf)) > 0; k++) {
                struct packet *p;
                double sent = t;

                if (loss > 0 && drand48() < loss)
                    continue;
                if (rate > 0) {
                    double behind = q->link_free - t;

                    if (behind > 1000 * 1500 / rate)
                        continue;
                    if (behind > 0)
                        sent = q->link_free;
                    sent += len / rate;
                    q->link_free = sent;
                }
                if (q->tail - q->head >= SLOTS)
                    continue;
                p = &q->slot[q->tail % SLOTS];
                p->due = sent + delay;
                p->len = len;
                p->data = malloc((size_t)len);
                if (p->data == NULL)
                    continue;
                memcpy(p->data, buf, (size_t)len);
                q->tail++;
            }
        }
    }
}
