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
 * The program inside a guest of the testbed. It listens on a virtio-serial
 * port, or on a serial line, and repeats one unit of work: a CPU loop, some
 * reads, some writes; a paced program then sleeps until its next arrival. Only
 * whole units are counted, with the time each was in service, so that neither
 * the edges of a measuring window nor the sleeping enters the time per unit.
 *
 *   run KEY=VALUE ...   start: cpu (iterations), reads, writes (a unit; may be
 *                       fractions), rseq, wseq (0 or 1), rsize, wsize (bytes),
 *                       period (microseconds, 0 = closed loop), think (so many
 *                       microseconds after a unit, about), queries, seed, loops
 *                       (how many do that at once, if they only compute),
 *                       walk (bytes of memory, a word of each line written);
 *                       or application (a name) and shards (how many inputs)
 *   stop                stop; answers once the work has stopped
 *   read                answers "clock units service reads readtime writes
 *                       writetime", times in nanoseconds, all since start
 *   calibrate N         answers the nanoseconds N iterations take
 *   quit                powers the guest off
 *
 * Where no port can be opened, a schedule tells what to do; see schedule.c.
 *
 * A unit of an application is one whole run of it on one of its inputs, in the
 * root file system of the applications' disk: srv/NAME/run SHARD, after
 * srv/NAME/begin, if there is one, was run once. What it wrote is on its disk
 * before the unit counts as done; then its output is removed and its input
 * leaves the page cache, so that every unit begins alike.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <linux/fs.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include "workload.h"

#define WORDS 4096              /* 32 KiB walked by the CPU loop */
#define APPLICATIONS "/apps"    /* their root file system */

#define LOOPS 4
#define LINE 64                 /* bytes, of a cache */

struct spec {
    double cpu, reads, writes, period, think;
    long loops;
    long rseq, wseq, rsize, wsize, queries, shards, walk;
    uint64_t seed;
    char application[32];
};

static struct spec spec;
static struct counters counters;
static volatile int running, busy;      /* busy: how many loops are */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
int disk = -1;
uint64_t disk_bytes;
static uint64_t read_at, write_at;
static __thread uint64_t rng;
static char *buffer;
static volatile char *memory;
static long memory_bytes;
static __thread volatile uint64_t words[WORDS];
static int to_database = -1, from_database = -1;
static long database_rows;
static volatile pid_t running_unit, running_daemon;     /* process groups */
static volatile int failed;     /* status of an application's run that failed */

uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + t.tv_nsec;
}

static uint64_t draw(void)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return rng;
}

void compute(long iterations)
{
    uint64_t x = 88172645463325252ull;
    for (long i = 0; i < iterations; i++) {
        x = x * 6364136223846793005ull + 1442695040888963407ull;
        words[(x >> 40) & (WORDS - 1)] ^= x;
    }
}

/* The first half of the disk is read, the second half written. */
static uint64_t offset(uint64_t *at, int sequential, long size, uint64_t base)
{
    uint64_t half = disk_bytes / 2 / BLOCK * BLOCK, o;
    if (sequential) {
        o = *at;
        *at = (*at + size) % half;
    } else {
        o = draw() % (half / size) * size;
    }
    return base + o;
}

static void transfer(int write)
{
    uint64_t half = disk_bytes / 2 / BLOCK * BLOCK;
    uint64_t begin = now();
    if (write) {
        if (pwrite(disk, buffer, spec.wsize,
                   offset(&write_at, spec.wseq, spec.wsize, half)) < 0)
            perror("write");
    } else if (pread(disk, buffer, spec.rsize,
                     offset(&read_at, spec.rseq, spec.rsize, 0)) < 0) {
        perror("read");
    }
    begin = now() - begin;
    pthread_mutex_lock(&lock);
    if (write) {
        counters.writes++;
        counters.writetime += begin;
    } else {
        counters.reads++;
        counters.readtime += begin;
    }
    pthread_mutex_unlock(&lock);
}

/* One query of the sqlite3 shell; its answer is a single line. */
static void query(void)
{
    char text[256];
    long first = draw() % database_rows;
    int n = snprintf(text, sizeof text,
                     "SELECT count(*), sum(amount) FROM sale WHERE customer = %ld;\n",
                     first);
    if (write(to_database, text, n) != n)
        perror("query");
    do {
        n = read(from_database, text, sizeof text);
    } while (n > 0 && text[n - 1] != '\n');
}

static void walk(void)
{
    for (long at = 0; at < spec.walk && running; at += LINE)
        memory[at]++;
}

static void start_database(void)
{
    int in[2];
    char *argv[] = {"sqlite3", "-readonly", "-batch", "-list", "/mnt/sales.db", NULL};
    /* The inner pages of the table are brought in first, else queries get
     * faster for the first minute on a slow device; leaves do not fit. */
    const char *first =
        "PRAGMA cache_size=-8192;\n"
        "WITH RECURSIVE step(id) AS (SELECT 1 UNION ALL SELECT id + 9000 FROM step "
        "WHERE id < 5000000) SELECT max(max(amount), (SELECT max(customer) FROM sale)) "
        "FROM step JOIN sale USING (id);\n";
    char answer[64];
    struct termios raw;
    if (to_database >= 0 || pipe(in))
        return;
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    grantpt(master);
    unlockpt(master);
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    tcgetattr(slave, &raw);
    cfmakeraw(&raw);
    tcsetattr(slave, TCSANOW, &raw);
    if (fork() == 0) {
        dup2(in[0], 0);
        dup2(slave, 1);
        dup2(slave, 2);
        close(in[1]);
        close(master);
        execv("/usr/bin/sqlite3", argv);
        _exit(127);
    }
    to_database = in[1];
    from_database = master;
    if (write(to_database, first, strlen(first)) < 0)
        perror("sqlite3");
    int n = read(from_database, answer, sizeof answer - 1);
    answer[n > 0 ? n : 0] = 0;
    database_rows = atol(answer);
}

static void drop_caches(void)
{
    int fd = open("/proc/sys/vm/drop_caches", O_WRONLY);
    if (fd >= 0) {
        if (write(fd, "3", 1) < 0)
            perror("drop_caches");
        close(fd);
    }
}

/* Starts srv/NAME/ACTION in a process group of its own; 0 if there is none. */
static pid_t launch(const char *action, int shard)
{
    char path[128], argument[16];
    snprintf(path, sizeof path, "%s/srv/%s/%s", APPLICATIONS, spec.application, action);
    if (access(path, R_OK))
        return 0;
    snprintf(argument, sizeof argument, "%d", shard);
    pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);
        int nothing = open("/dev/null", O_RDWR);
        if (chroot(APPLICATIONS) || chdir("/work"))
            _exit(126);
        dup2(nothing, 0);
        dup2(nothing, 1);
        execl("/bin/busybox", "sh", path + strlen(APPLICATIONS), argument, NULL);
        _exit(127);
    }
    setpgid(child, child);
    return child;
}

static int forget(const char *path, const struct stat *st, int type, struct FTW *unused)
{
    (void)st, (void)unused;
    int fd = type == FTW_F ? open(path, O_RDONLY) : -1;
    if (fd >= 0) {
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        close(fd);
    }
    return 0;
}

static int delete(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type;
    if (at->level > 0)
        remove(path);
    return 0;
}

/* One run of the application; whether it went well. */
static int application(long shard)
{
    char path[128];
    int status = 0, work = open(APPLICATIONS "/work", O_RDONLY | O_DIRECTORY);
    pid_t child = launch("run", shard);
    if (child > 0) {
        running_unit = child;
        if (!running)           /* it was stopped in the moment of the launch */
            kill(-child, SIGKILL);
        waitpid(child, &status, 0);
        running_unit = 0;
        kill(-child, SIGKILL);  /* what it left behind */
    } else {
        status = 126 << 8;
    }
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;                       /* process 1 inherits orphans */
    if (running && status)
        failed = status;
    if (running && work >= 0)
        syncfs(work);
    close(work);
    snprintf(path, sizeof path, "%s/srv/%s/%ld", APPLICATIONS, spec.application, shard);
    nftw(APPLICATIONS "/work", delete, 16, FTW_DEPTH | FTW_PHYS);
    nftw(path, forget, 16, FTW_PHYS);
    return running && !status;
}

/* Whether the application, its server included, is ready for its first run. */
static int begin_application(void)
{
    int status = 0;
    char path[128];
    snprintf(path, sizeof path, "%s/srv/%s", APPLICATIONS, spec.application);
    if (access(path, R_OK))
        return 0;
    nftw(APPLICATIONS "/work", delete, 16, FTW_DEPTH | FTW_PHYS);
    running_daemon = launch("begin", 0);
    return !running_daemon || (waitpid(running_daemon, &status, 0) > 0 && !status);
}

static void end_application(void)
{
    pid_t server = running_daemon;
    running_daemon = 0;
    if (server > 0)
        kill(-server, SIGKILL);
}

static int unit(double *read_credit, double *write_credit)
{
    long left = spec.cpu;
    long slice = 0, slices;
    *read_credit += spec.reads;
    *write_credit += spec.writes;
    long reads = *read_credit, writes = *write_credit;
    *read_credit -= reads;
    *write_credit -= writes;
    /* the CPU loop is spread over the transfers, not a block before them */
    slices = reads + writes + 1;
    slice = left / slices;
    for (long s = 0; s < slices; s++) {
        long n = s == slices - 1 ? left : slice;
        left -= n;
        for (; n > 0 && running; n -= CHUNK)
            compute(n < CHUNK ? n : CHUNK);
        if (!running)
            return 0;
        if (s < reads)
            transfer(0);
        else if (s < reads + writes)
            transfer(1);
    }
    walk();
    for (long q = 0; q < spec.queries && running; q++)
        query();
    if (spec.application[0])
        return application((spec.seed + counters.units) % spec.shards);
    return running;
}

static void sleep_until(uint64_t due)
{
    struct timespec t = {due / 1000000000ull, due % 1000000000ull};
    while (running && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

static void *work(void *number)
{
    long own = (long)number;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!running || own >= spec.loops)
            pthread_cond_wait(&changed, &lock);
        busy++;
        pthread_mutex_unlock(&lock);

        double read_credit = 0, write_credit = 0;
        uint64_t period = spec.period * 1000, think = spec.think * 1000;
        uint64_t due = now(), woken = 0;
        rng = (spec.seed + 7919 * own) * 2654435761ull + 88172645463325252ull;
        if (spec.queries)
            start_database();
        while (running) {
            /* Who wakes up late has waited for a core meanwhile. */
            uint64_t begin = woken ? woken : now(), end;
            int whole = unit(&read_credit, &write_credit);
            end = now();
            if (!whole)
                break;
            pthread_mutex_lock(&lock);
            counters.units++;
            counters.service += end - begin;
            pthread_mutex_unlock(&lock);
            if (think) {
                woken = end + think / 2 + draw() % think;
                sleep_until(woken);
            }
            if (!period)
                continue;
            /* Arrivals are jittered, or two paced neighbours would keep one
             * phase for a whole window and never meet, or always. */
            due += period / 2 + draw() % period;
            if (end < due)
                sleep_until(due);
            else if (end - due > 2 * period)
                due = end;
        }
        pthread_mutex_lock(&lock);
        busy--;
        pthread_cond_broadcast(&changed);
    }
    return NULL;
}

static double number(const char *line, const char *key, double otherwise)
{
    char pattern[32];
    snprintf(pattern, sizeof pattern, " %s=", key);
    const char *found = strstr(line, pattern);
    return found ? strtod(found + strlen(pattern), NULL) : otherwise;
}

static void text(const char *line, const char *key, char *into, size_t size)
{
    char pattern[32];
    snprintf(pattern, sizeof pattern, " %s=", key);
    const char *found = strstr(line, pattern);
    size_t length = 0;
    if (found) {
        found += strlen(pattern);
        length = strcspn(found, " ");
    }
    snprintf(into, size, "%.*s", (int)length, found ? found : "");
}

void stop(void)
{
    pthread_mutex_lock(&lock);
    running = 0;
    if (running_unit > 0)
        kill(-running_unit, SIGKILL);
    while (busy)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    end_application();
}

/* 0, or why it cannot be started. */
const char *start(const char *line)
{
    stop();
    failed = 0;
    pthread_mutex_lock(&lock);
    spec.cpu = number(line, "cpu", 0);
    spec.reads = number(line, "reads", 0);
    spec.writes = number(line, "writes", 0);
    spec.period = number(line, "period", 0);
    spec.think = number(line, "think", 0);
    spec.loops = number(line, "loops", 1);
    spec.rseq = number(line, "rseq", 0);
    spec.wseq = number(line, "wseq", 0);
    spec.rsize = number(line, "rsize", 4096);
    spec.wsize = number(line, "wsize", 4096);
    spec.queries = number(line, "queries", 0);
    spec.walk = number(line, "walk", 0);
    spec.seed = number(line, "seed", 1);
    spec.shards = number(line, "shards", 1);
    text(line, "application", spec.application, sizeof spec.application);
    if (spec.queries)
        drop_caches();
    if (spec.walk > memory_bytes) {
        free((void *)memory);
        memory = malloc(spec.walk);
        memory_bytes = memory ? spec.walk : 0;
        memset((void *)memory, 1, memory_bytes);    /* so that none is a hole */
    }
    memset(&counters, 0, sizeof counters);
    if (spec.walk > memory_bytes) {
        pthread_mutex_unlock(&lock);
        return "there is not so much memory to walk";
    }
    if (spec.loops > LOOPS
        || (spec.loops > 1 && (spec.reads || spec.writes || spec.queries
                               || spec.application[0]))) {
        pthread_mutex_unlock(&lock);
        return "several loops can only compute, and are four at most";
    }
    if (spec.application[0] && !begin_application()) {
        pthread_mutex_unlock(&lock);
        return "the application is not on its disk, or did not begin";
    }
    running = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return NULL;
}

struct counters counted(uint64_t *at)
{
    pthread_mutex_lock(&lock);
    struct counters c = counters;
    *at = now();
    pthread_mutex_unlock(&lock);
    return c;
}

/* Whether there is a disk to work on. */
static int open_disk(const char *path)
{
    pthread_t worker;
    disk = open(path, O_RDWR | O_DIRECT);
    if (disk >= 0 && ioctl(disk, BLKGETSIZE64, &disk_bytes))
        disk_bytes = lseek(disk, 0, SEEK_END);          /* a file, in tests */
    if (posix_memalign((void **)&buffer, 4096, BLOCK) || disk_bytes < 4 * BLOCK)
        return 0;
    memset(buffer, 0x5a, BLOCK);
    for (long own = 0; own < LOOPS; own++)
        pthread_create(&worker, NULL, work, (void *)own);
    return 1;
}

int main(int argc, char **argv)
{
    char line[512];
    if (argc < 3)
        return 1;
    if (argc > 3 && !strcmp(argv[1], "schedule"))
        open_disk(argv[3]), follow(argv[2]);
    int port = open(argv[1], O_RDWR);
    struct termios raw;
    if (port >= 0 && !tcgetattr(port, &raw)) {      /* a serial line, no virtio port */
        cfmakeraw(&raw);
        tcsetattr(port, TCSANOW, &raw);
    }
    FILE *in = port < 0 ? NULL : fdopen(port, "r");
    if (!in)
        return 1;
    if (!open_disk(argv[2]))
        return 1;
    for (;;) {
        if (!fgets(line, sizeof line, in)) {
            clearerr(in);       /* the other end is not open */
            usleep(20000);
            continue;
        }
        line[strcspn(line, "\r\n")] = 0;
        if (!strncmp(line, "run", 3)) {
            const char *refused = start(line);
            dprintf(port, refused ? "error %s: %s\n" : "ok\n", spec.application, refused);
        } else if (!strcmp(line, "stop")) {
            stop();
            dprintf(port, "ok\n");
        } else if (!strcmp(line, "read") && failed) {
            dprintf(port, "error %s: a run of it ended with status %d\n", spec.application,
                    WIFEXITED(failed) ? WEXITSTATUS(failed) : -WTERMSIG(failed));
        } else if (!strcmp(line, "read")) {
            uint64_t t;
            struct counters c = counted(&t);
            dprintf(port, "%lu %lu %lu %lu %lu %lu %lu\n", t, c.units, c.service,
                    c.reads, c.readtime, c.writes, c.writetime);
        } else if (!strncmp(line, "calibrate ", 10)) {
            uint64_t begin = now();
            for (long n = atol(line + 10); n > 0; n -= CHUNK)
                compute(n < CHUNK ? n : CHUNK);
            dprintf(port, "%lu\n", now() - begin);
        } else if (!strcmp(line, "quit")) {
            dprintf(port, "ok\n");
            sync();
            reboot(RB_POWER_OFF);
        } else if (line[0]) {
            dprintf(port, "error unknown command %s\n", line);
        }
    }
}
