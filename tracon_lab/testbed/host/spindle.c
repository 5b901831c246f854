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
 * An nbdkit plugin: a directory of disk images that share one emulated
 * spindle. One request is served at a time. A request that goes on where the
 * head stands costs its transfer alone; any other pays a seek, which grows
 * with the square root of the distance, and half a turn.
 *
 *   nbdkit spindle.so dir=DIRECTORY rate=BYTES_PER_SECOND turn=MICROSECONDS
 *          seek=MICROSECONDS
 */
#define NBDKIT_API_VERSION 2
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <nbdkit-plugin.h>

#define THREAD_MODEL NBDKIT_THREAD_MODEL_SERIALIZE_ALL_REQUESTS
#define EXPORTS 16

static const char *directory;
static double rate = 80e6, turn = 8333, seek = 8000;
static uint64_t head;
static char *names[EXPORTS];
static uint64_t bases[EXPORTS], span;     /* span: what a full seek crosses */
static int count;

struct disk {
    int fd;
    uint64_t base, size;
};

static int config(const char *key, const char *value)
{
    if (!strcmp(key, "dir"))
        directory = value;
    else if (!strcmp(key, "rate"))
        rate = atof(value);
    else if (!strcmp(key, "turn"))
        turn = atof(value);
    else if (!strcmp(key, "seek"))
        seek = atof(value);
    else {
        nbdkit_error("unknown parameter %s", key);
        return -1;
    }
    return 0;
}

/* An image lies on the platter where its name stands among the others. */
static int config_complete(void)
{
    struct dirent **found;
    int n = directory ? scandir(directory, &found, NULL, alphasort) : -1;
    if (n < 0) {
        nbdkit_error("dir= has to name a directory of images");
        return -1;
    }
    for (int i = 0; i < n; i++) {
        struct stat status;
        char *path;
        if (found[i]->d_name[0] == '.')
            continue;
        if (count == EXPORTS || asprintf(&path, "%s/%s", directory, found[i]->d_name) < 0
            || stat(path, &status)) {
            nbdkit_error("%s: too many images, or not to be read", found[i]->d_name);
            return -1;
        }
        free(path);
        names[count] = found[i]->d_name;
        bases[count++] = span;
        span += status.st_size;
    }
    return 0;
}

static void *open_disk(int readonly)
{
    const char *name = nbdkit_export_name();
    struct stat status;
    for (int i = 0; name && i < count; i++) {
        if (strcmp(name, names[i]))
            continue;
        struct disk *disk = calloc(1, sizeof *disk);
        char *path;
        if (!disk || asprintf(&path, "%s/%s", directory, name) < 0)
            return NULL;
        disk->fd = open(path, readonly ? O_RDONLY : O_RDWR);
        free(path);
        if (disk->fd < 0 || fstat(disk->fd, &status)) {
            nbdkit_error("%s: %m", name);
            free(disk);
            return NULL;
        }
        disk->size = status.st_size;
        disk->base = bases[i];
        return disk;
    }
    nbdkit_error("no image named %s", name ? name : "");
    return NULL;
}

static void close_disk(void *handle)
{
    struct disk *disk = handle;
    close(disk->fd);
    free(disk);
}

static int64_t get_size(void *handle)
{
    return ((struct disk *)handle)->size;
}

static void wait_for_head(struct disk *disk, uint64_t offset, uint32_t count, uint64_t begin)
{
    uint64_t at = disk->base + offset;
    double seconds = count / rate;
    if (at != head) {
        double distance = at > head ? at - head : head - at;
        seconds += (seek * (0.15 + 0.85 * sqrt(distance / span)) + turn / 2) * 1e-6;
    }
    head = at + count;
    begin += (uint64_t)(seconds * 1e9);
    struct timespec due = {begin / 1000000000ull, begin % 1000000000ull};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL))
        ;
}

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + t.tv_nsec;
}

static int disk_pread(void *handle, void *buffer, uint32_t count, uint64_t offset,
                      uint32_t flags)
{
    struct disk *disk = handle;
    uint64_t begin = now();
    (void)flags;
    if (pread(disk->fd, buffer, count, offset) != (ssize_t)count) {
        nbdkit_error("read: %m");
        return -1;
    }
    wait_for_head(disk, offset, count, begin);
    return 0;
}

static int disk_pwrite(void *handle, const void *buffer, uint32_t count, uint64_t offset,
                       uint32_t flags)
{
    struct disk *disk = handle;
    uint64_t begin = now();
    (void)flags;
    if (pwrite(disk->fd, buffer, count, offset) != (ssize_t)count) {
        nbdkit_error("write: %m");
        return -1;
    }
    wait_for_head(disk, offset, count, begin);
    return 0;
}

static int can_multi_conn(void *handle)
{
    (void)handle;
    return 0;
}

static struct nbdkit_plugin plugin = {
    .name = "spindle",
    .longname = "one emulated spindle shared by several disk images",
    .config = config,
    .config_complete = config_complete,
    .open = open_disk,
    .close = close_disk,
    .get_size = get_size,
    .can_multi_conn = can_multi_conn,
    .pread = disk_pread,
    .pwrite = disk_pwrite,
};

NBDKIT_REGISTER_PLUGIN(plugin)
