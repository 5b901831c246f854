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
 * What a guest does that has no channel to the outside: a schedule by the wall
 * clock came with its ramdisk, and what it has done it says on its console. The
 * first line of the schedule is
 *
 *   calibrate                      say how fast this guest is, alone, or
 *   schedule START LENGTH SETTLE   windows of LENGTH seconds follow each other
 *                                  from START on (since the epoch), a line each:
 *                                  a program as workload.c takes it, or "-" for
 *                                  silence; in each, what happens from SETTLE
 *                                  seconds after its begin to its end counts
 *
 * Consoles are cut at their beginning, so each line tells of one thing, and ends
 * with "ok" when it is whole. A window that begins while the guest still boots
 * is left out, so its line never comes.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <linux/rtc.h>
#include <time.h>
#include <unistd.h>
#include "workload.h"

#define CALIBRATION 5000000000ull       /* nanoseconds, of each of three */
#define SLICE 200000000ull
#define DRIFT 2.0                       /* seconds that the clock may be off */

static double wall(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

/* Seconds of the clock that the hypervisor keeps; 0 when there is none. */
static time_t hardware_clock(int fd)
{
    struct rtc_time r;
    if (fd < 0 || ioctl(fd, RTC_RD_TIME, &r))
        return 0;
    struct tm t = {.tm_sec = r.tm_sec, .tm_min = r.tm_min, .tm_hour = r.tm_hour,
                   .tm_mday = r.tm_mday, .tm_mon = r.tm_mon, .tm_year = r.tm_year};
    return timegm(&t);
}

/* The hypervisor's clock does not drift from that of its host, this one may. It
 * counts whole seconds, so it is read when the next one begins. */
static void set_clock(double tolerance)
{
    if (getpid() != 1)          /* this is no guest, but a test of the program */
        return;
    int fd = open("/dev/rtc0", O_RDONLY);
    time_t first = hardware_clock(fd), next = first;
    double off = wall() - first;
    if (first && (off < -tolerance || off > 1 + tolerance)) {
        while (next == first) {
            usleep(2000);
            next = hardware_clock(fd);
        }
        struct timespec t = {next, 0};
        clock_settime(CLOCK_REALTIME, &t);
    }
    close(fd);
}

static void wait_until(double at)
{
    double left;
    while ((left = at - wall()) > 0)
        usleep(left > 1 ? 900000 : left * 1e6 + 1);
}

/* Blocks that were never written answer too fast. */
static int fill(void)
{
    size_t size = 16 * BLOCK;
    char *block;
    if (posix_memalign((void **)&block, 4096, size))
        return 0;
    for (size_t i = 0; i < size; i++)
        block[i] = i * 31 + (i >> 8);
    for (uint64_t at = 0; at + size <= disk_bytes; at += size)
        if (pwrite(disk, block, size, at) < 0)
            return 0;
    fsync(disk);
    free(block);
    return 1;
}

/* Iterations a second: in the fastest slice, since a disturbance only slows. */
static double iterations(void)
{
    uint64_t begin = now();
    double best = 0;
    while (now() - begin < CALIBRATION) {
        uint64_t slice = now(), passed;
        long count = 0;
        do {
            compute(CHUNK);
            count += CHUNK;
            passed = now() - slice;
        } while (passed < SLICE);
        if (count * 1e9 / passed > best)
            best = count * 1e9 / passed;
    }
    return best;
}

/* Requests a second of a program that does nothing else. */
static double requests(const char *command)
{
    uint64_t begin, end;
    struct timespec t = {CALIBRATION / 1000000000ull, 0};
    start(command);
    begin = now();
    nanosleep(&t, NULL);
    struct counters c = counted(&end);
    stop();
    return (c.reads + c.writes) * 1e9 / (end - begin);
}

static void window(int number, const char *program, double begin, double length, double settle)
{
    uint64_t from, to;
    struct counters before, after;
    const char *refused = start(program);
    if (refused) {
        printf("tracon failed %d %s ok\n", number, refused);
        return;
    }
    wait_until(begin + settle);
    before = counted(&from);
    wait_until(begin + length);
    after = counted(&to);
    stop();
    printf("tracon window %d %.3f %lu %lu %lu %lu %lu ok\n", number, begin, to - from,
           after.units - before.units, after.service - before.service,
           after.reads - before.reads, after.writes - before.writes);
}

void follow(const char *path)
{
    char line[512];
    double begin, length, settle;
    FILE *in = fopen(path, "r");
    setlinebuf(stdout);
    set_clock(-1);
    if (!disk_bytes || !fill() || !in || !fgets(line, sizeof line, in)) {
        printf("tracon failed 0 its disk cannot be written ok\n");
        line[0] = 0;
    }
    printf("tracon ready %.3f %lu ok\n", wall(), disk_bytes);
    if (!strncmp(line, "calibrate", 9)) {
        double cpu = iterations();
        double reads = requests("run reads=1 seed=1"), writes = requests("run writes=1 seed=1");
        printf("tracon calibrated %.0f %.1f %.1f ok\n", cpu, reads, writes);
    } else if (sscanf(line, "schedule %lf %lf %lf", &begin, &length, &settle) == 3) {
        for (int number = 0; fgets(line, sizeof line, in); number++, begin += length) {
            line[strcspn(line, "\r\n")] = 0;
            wait_until(begin);
            set_clock(DRIFT);
            if (line[0] != '-' && wall() < begin + settle)
                window(number, line, begin, length, settle);
        }
    }
    printf("tracon end ok\n");
    for (;;)
        pause();                /* the user who booted the guest deletes it */
}
