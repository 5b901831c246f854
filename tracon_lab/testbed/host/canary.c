/*
 * Licensed under the Apache License, Version 2.0 (the "License"); you may
 * not use this file except in compliance with the License. You may obtain
 * a copy of the License at
 *
 *      http://www.apache.org/licenses/LICENSE-2.0
 *
 * Unless required by applicable law or agreed to in writing, software
 * distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
 * WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
 * License for the specific language governing permissions and limitations
 * under the License.
 */

/*
 * What the measured core is worth at a moment. Called with "pulse" it does the
 * same short piece of CPU work 33 times a second, while windows are taken and
 * between them, and prints when (nanoseconds of the monotonic clock) and how
 * long it took: when it takes longer than usual, the machine itself has
 * changed, most often because another tenant keeps the other hardware thread
 * of the core busy. The work has many independent operations at a time: a
 * chain of dependent ones would not feel that, and guests do. It touches
 * little memory, so that what guests do to caches is not mistaken for drift.
 *
 * Called with "spin" it keeps the core from going idle, at the lowest
 * priority there is: a core that has to be woken up runs at another speed.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define PAUSE 30                /* milliseconds between two pieces of work */
#define WORDS 1024

static volatile uint64_t result;
static uint64_t words[WORDS];

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void additions(long n)
{
    uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8;
    for (long i = 0; i < n; i++) {
        a += i;
        b ^= i;
        c -= i;
        d += 3;
        e ^= i + 1;
        f += 7;
        g ^= a;
        h += b;
        /* or the compiler would foresee the result */
        __asm__ volatile("" : : "r"(a), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f), "r"(g), "r"(h));
    }
    result = a + b + c + d + e + f + g + h;
}

static void loads(long n)
{
    uint64_t s = 0, t = 0;
    for (long i = 0; i < n; i++) {
        s += words[i & (WORDS - 1)];
        t ^= words[(i * 7) & (WORDS - 1)];
        words[(i * 3) & (WORDS - 1)] = s;
    }
    result = s + t;
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "spin")) {
        struct sched_param none = {0};
        sched_setscheduler(0, SCHED_IDLE, &none);
        for (;;)
            additions(100000000);
    }
    if (argc == 2 && !strcmp(argv[1], "pulse")) {
        for (;;) {
            additions(2000);    /* wake up first */
            uint64_t begin = now();
            additions(200000);
            loads(120000);
            uint64_t end = now();
            if (printf("%lu %lu\n", begin, end - begin) < 0 || fflush(stdout))
                return 0;
            poll(NULL, 0, PAUSE);
        }
    }
    fprintf(stderr, "usage: canary pulse|spin\n");
    return 1;
}
