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

/* What a guest can do, for those who tell it when: a port, or a schedule. */
#include <stdint.h>

#define BLOCK (64 * 1024)
#define CHUNK 20000             /* CPU iterations between looks at the stop flag */

struct counters {
    uint64_t units, service, reads, readtime, writes, writetime;
};

extern int disk;
extern uint64_t disk_bytes;

uint64_t now(void);             /* nanoseconds, monotonic */
void compute(long iterations);
const char *start(const char *line);    /* 0, or why it cannot be started */
void stop(void);
struct counters counted(uint64_t *at);  /* since start, and when */

/* Works off the schedule in a file, and never returns; see schedule.c. */
void follow(const char *path);
