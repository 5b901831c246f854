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
 * A fixed piece of CPU work on the measured core, between windows: when it
 * takes longer or shorter than usual the machine itself has changed. For each
 * line on standard input it answers the nanoseconds the work took. The work
 * has many independent operations at a time and walks a megabyte: a chain of
 * dependent ones would not feel a busy sibling thread, and emulated guests do.
 * It is cut into slices and the median slice counts, so that one timer
 * interrupt of an idle guest is not mistaken for drift.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SLICES 9
#define BYTES (1 << 20)

static uint8_t memory[BYTES];
static volatile uint64_t result;

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void slice_of_work(long iterations)
{
    uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6;
    for (long i = 0; i < iterations; i++) {
        a = a * 3 + i;
        b ^= b << 3;
        c += a >> 2;
        d = (d >> 1) + b;
        e += d ^ i;
        f -= c;
        if (f & 8)
            a++;
        else
            b += e;
        memory[(c >> 5) & (BYTES - 1)]++;
    }
    result = a + b + c + d + e + f;
}

int main(int argc, char **argv)
{
    long iterations = argc > 1 ? atol(argv[1]) : 2000000;
    char line[16];
    uint64_t slice[SLICES];
    while (fgets(line, sizeof line, stdin)) {
        for (int s = 0; s < SLICES; s++) {
            uint64_t begin = now();
            slice_of_work(iterations);
            slice[s] = now() - begin;
        }
        qsort(slice, SLICES, sizeof slice[0], ascending);
        printf("%lu\n", slice[SLICES / 2] * SLICES);
        fflush(stdout);
    }
    return 0;
}
