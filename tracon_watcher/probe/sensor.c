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
 * The sensor: the only program of a small VM, whose own slowdown shows that
 * others contend for its host. It does a known piece of work for each HTTP
 * request and answers how long the work alone took:
 *
 *   GET /about?nonce=HEX                  nothing
 *   GET /connection?nonce=HEX&work=N      N steps of a generator in 32 KiB
 *   GET /memory?nonce=HEX&integers=N      reads each of N 32-bit integers once
 *   GET /read?nonce=HEX&blocks=N          N direct reads of 4 KiB of its disk
 *   GET /write?nonce=HEX&blocks=N         N direct, synchronous writes of 4 KiB
 *
 * HEX has 16 digits. Requests and answers are signed with HMAC-SHA256: the
 * header Tracon-Signature of a request is that of its target, the one of an
 * answer is that of its body. No target begins like a body does, so that no
 * answer is of use as the signature of a request. One request follows the
 * other, in the order in which they come, each on a connection of its own.
 *
 * As process 1 it reads its settings from a config drive, lines "key=value":
 * secret (64 hexadecimal digits), address (as 10.0.0.5/24), and perhaps
 * gateway, port, mtu. "sensor --serve SETTINGS [DISK]" serves 127.0.0.1 only.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <net/route.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define WORDS 4096                      /* 32 KiB, as the workload's loop */
#define BLOCK 4096
#define REGION (16ul << 20)             /* of the disk that is read, and that is written */
#define KERNEL (8ul << 20)              /* memory that the array leaves free */
#define MOST_INTEGERS (1ul << 30)
#define LINE_INTEGERS 16                /* in a cache line */
#define WARM_UP 6
#define REQUEST 2048
#define SECOND 1000000000ull
#define PATIENCE (10 * SECOND)          /* until devices are there */
#define LINE 128

static char secret[LINE], address[LINE], gateway[LINE], port[LINE] = "8640", mtu[LINE];
static unsigned char key[32];
static int reader = -1, writer = -1;    /* the disk */
static uint64_t region, write_base;     /* bytes */
static char block[16 * BLOCK] __attribute__((aligned(BLOCK)));
static uint32_t *array;
static uint64_t most_integers, filled;
static volatile uint64_t words[WORDS];
static uint64_t rng;

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * SECOND + t.tv_nsec;
}

static void fatal(const char *format, ...)
{
    va_list rest;
    va_start(rest, format);
    fprintf(stderr, "sensor: ");
    vfprintf(stderr, format, rest);
    fprintf(stderr, "\n");
    va_end(rest);
    if (getpid() != 1)
        exit(1);
    sleep(5);                           /* the console is read, and this is no busy loop */
    reboot(RB_AUTOBOOT);
    for (;;)
        pause();
}

/* SHA-256 (FIPS 180-4) of up to 4 KiB. */

static uint32_t rotated(uint32_t x, int bits)
{
    return x >> bits | x << (32 - bits);
}

static void sha256(const unsigned char *data, size_t length, unsigned char *digest)
{
    static const uint32_t k[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
        0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
        0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
        0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
        0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
        0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
        0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
        0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
        0xc67178f2};
    uint32_t h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    unsigned char padded[4096 + 128] = {0};
    size_t whole = (length + 9 + 63) / 64 * 64;
    memcpy(padded, data, length);
    padded[length] = 0x80;
    for (int i = 0; i < 8; i++)
        padded[whole - 1 - i] = (uint64_t)length * 8 >> 8 * i;
    for (size_t at = 0; at < whole; at += 64) {
        uint32_t w[64], s[8];
        for (int i = 0; i < 16; i++) {
            const unsigned char *p = padded + at + 4 * i;
            w[i] = (uint32_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
        }
        for (int i = 16; i < 64; i++) {
            uint32_t a = w[i - 15], b = w[i - 2];
            w[i] = w[i - 16] + (rotated(a, 7) ^ rotated(a, 18) ^ a >> 3)
                + w[i - 7] + (rotated(b, 17) ^ rotated(b, 19) ^ b >> 10);
        }
        memcpy(s, h, sizeof s);
        for (int i = 0; i < 64; i++) {
            uint32_t a = s[0], e = s[4];
            uint32_t one = s[7] + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25))
                + ((e & s[5]) ^ (~e & s[6])) + k[i] + w[i];
            uint32_t two = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22))
                + ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
            memmove(s + 1, s, 7 * sizeof *s);
            s[4] += one;
            s[0] = one + two;
        }
        for (int i = 0; i < 8; i++)
            h[i] += s[i];
    }
    for (int i = 0; i < 32; i++)
        digest[i] = h[i / 4] >> (24 - i % 4 * 8);
}

/* HMAC-SHA256 of a text below 4,000 characters, as 64 hexadecimal digits. */
static void sign(const char *text, char *signature)
{
    unsigned char inner[4096], outer[96], digest[32];
    size_t length = strlen(text);
    for (int i = 0; i < 64; i++) {
        unsigned char k = i < 32 ? key[i] : 0;
        inner[i] = k ^ 0x36;
        outer[i] = k ^ 0x5c;
    }
    memcpy(inner + 64, text, length);
    sha256(inner, 64 + length, outer + 64);
    sha256(outer, sizeof outer, digest);
    for (int i = 0; i < 32; i++)
        sprintf(signature + 2 * i, "%02x", digest[i]);
}

/* The pieces of work. */

static uint64_t draw(void)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return rng;
}

static void seed(uint64_t value)
{
    rng = value ^ 88172645463325252ull;
    if (!rng)
        rng = 1;                        /* zero would be drawn for ever */
}

static uint64_t nothing(uint64_t nonce, uint64_t count)
{
    (void)nonce;
    return count;
}

static uint64_t compute(uint64_t x, uint64_t steps)
{
    for (; steps > 0; steps--) {
        x = x * 6364136223846793005ull + 1442695040888963407ull;
        words[(x >> 40) & (WORDS - 1)] ^= x;
    }
    return x;
}

/* One integer of each cache line, then the next one of each: each pass fetches the whole array
 * again. Of five orders this one slows down most beside a guest that is hungry for memory, and
 * beside one that only computes it does not. */
static uint64_t traverse(uint64_t sum, uint64_t integers)
{
    const volatile uint32_t *a = array;
    for (uint32_t pass = 0; pass < LINE_INTEGERS; pass++)
        for (uint32_t i = pass; i < integers; i += LINE_INTEGERS)
            sum += a[i];
    return sum;
}

/* What was never needed before is filled. The first traversals take longer, above all where the
 * CPU is emulated: these are not timed. */
static void prepare_array(uint64_t integers)
{
    if (filled >= integers)
        return;
    for (; filled < integers; filled++)
        array[filled] = filled;
    for (int i = 0; i < WARM_UP; i++)
        traverse(0, integers);
}

/* All blocks, or 0; then errno says why. */
static uint64_t read_blocks(uint64_t nonce, uint64_t blocks)
{
    seed(nonce);
    for (uint64_t n = 0; n < blocks; n++)
        if (pread(reader, block + BLOCK, BLOCK, draw() % (region / BLOCK) * BLOCK) != BLOCK)
            return 0;
    return blocks;
}

static uint64_t write_blocks(uint64_t nonce, uint64_t blocks)
{
    seed(nonce);
    for (uint64_t n = 0; n < blocks; n++)
        if (pwrite(writer, block, BLOCK,
                   write_base + draw() % (region / BLOCK) * BLOCK) != BLOCK)
            return 0;
    return blocks;
}

static const struct piece {
    const char *name, *unit;
    uint64_t least, most;
    uint64_t (*work)(uint64_t nonce, uint64_t count);
} pieces[] = {
    {"about", NULL, 0, 0, nothing},
    {"connection", "work", 1, 100000000, compute},
    {"memory", "integers", 1024, UINT64_MAX, traverse},
    {"read", "blocks", 1, 10000, read_blocks},
    {"write", "blocks", 1, 10000, write_blocks},
};

/* The piece of work that a target names, or NULL; every target has one spelling. */
static const struct piece *find_piece(const char *target, uint64_t *nonce, uint64_t *count)
{
    char name[16] = "", unit[16] = "", canonical[128];
    sscanf(target, "/%15[a-z]?nonce=%16lx&%15[a-z]=%20lu", name, nonce, unit, count);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        int n = snprintf(canonical, sizeof canonical, "/%s?nonce=%016lx", pieces[i].name, *nonce);
        if (pieces[i].unit)
            snprintf(canonical + n, sizeof canonical - n, "&%s=%lu", pieces[i].unit, *count);
        if (!strcmp(canonical, target))
            return pieces + i;
    }
    return NULL;
}

/* Does what an authentic target asks for, and writes the body; its status. */
static int perform(const char *target, char *body, size_t size)
{
    uint64_t nonce = 0, count = 0, begin, seconds, result;
    const struct piece *piece = find_piece(target, &nonce, &count);
    if (!piece) {
        snprintf(body, size, "400: unknown target %s: ask for /about?nonce=HEX, "
                 "/connection?nonce=HEX&work=N, /memory?nonce=HEX&integers=N, "
                 "/read?nonce=HEX&blocks=N or /write?nonce=HEX&blocks=N, HEX of 16 digits "
                 "in lower case, N without leading zeros\n", target);
        return 400;
    }
    int on_disk = piece->work == read_blocks || piece->work == write_blocks;
    if (count < piece->least || count > piece->most) {
        snprintf(body, size, "400: %s: %s=%lu is out of range: give %lu to %lu\n", target,
                 piece->unit, count, piece->least,
                 piece->work == traverse ? most_integers : piece->most);
        return 400;
    }
    if (on_disk && reader < 0) {
        snprintf(body, size, "409: %s: this sensor has no usable disk: give its VM one\n",
                 target);
        return 409;
    }
    if (piece->work == traverse && count > most_integers) {
        snprintf(body, size, "409: %s: %lu integers do not fit its memory: give at most %lu, "
                 "or its VM more memory\n", target, count, most_integers);
        return 409;
    }
    if (piece->work == traverse)
        prepare_array(count);
    errno = EIO;                        /* of a short transfer */
    begin = now();
    result = piece->work(nonce, count);
    seconds = now() - begin;
    if (on_disk && !result) {
        snprintf(body, size, "409: %s: its disk failed, %s: look at its volume\n", target,
                 strerror(errno));
        return 409;
    }
    snprintf(body, size, "{\"schema\": \"tracon-sensor/1\", \"target\": \"%s\", "
             "\"seconds\": %llu.%09llu, \"result\": \"%lu\"}",
             target, seconds / SECOND, seconds % SECOND, result);
    return 200;
}

/* HTTP. */

static int same(const char *one, const char *other, size_t length)
{
    unsigned char different = 0;
    for (size_t i = 0; i < length; i++)
        different |= one[i] ^ other[i];
    return !different;
}

/* Answers a request, the text up to its empty line; the status. */
static int respond(char *request, char *body, size_t size)
{
    char method[16], target[REQUEST], version[16], expected[65];
    if (sscanf(request, "%15[A-Z] %2000[!-~] %15[A-Z/0-9.]\r\n", method, target, version) != 3
        || strncmp(version, "HTTP/1.", 7)) {
        snprintf(body, size, "400: this is no request of HTTP/1.1: send one, "
                 "at most %d bytes within a second\n", REQUEST);
        return 400;
    }
    if (strcmp(method, "GET")) {
        snprintf(body, size, "405: unknown method %s: use GET\n", method);
        return 405;
    }
    static const char name[] = "\r\nTracon-Signature:";
    const char *given = strcasestr(request, name);
    if (given) {
        given += sizeof name - 1;
        given += strspn(given, " \t");
    }
    sign(target, expected);
    if (!given || strcspn(given, " \t\r") != 64 || !same(given, expected, 64)) {
        snprintf(body, size, "403: the header Tracon-Signature is missing or wrong: "
                 "give the HMAC-SHA256 of the target with this sensor's secret\n");
        return 403;
    }
    return perform(target, body, size);
}

static void serve(int client)
{
    char request[REQUEST + 1], body[REQUEST + 1024], answer[2 * REQUEST + 1024], signature[65];
    size_t length = 0;
    ssize_t n = 0;
    uint64_t deadline = now() + SECOND, at;
    struct pollfd ready = {client, POLLIN, 0};
    do {
        at = now();
        /* a VM that did not run for a second finds what came meanwhile */
        if (poll(&ready, 1, at < deadline ? (deadline - at) / 1000000 + 1 : 0) <= 0)
            break;
        n = recv(client, request + length, REQUEST - length, MSG_DONTWAIT);
        length += n > 0 ? n : 0;
        request[length] = 0;
    } while (n > 0 && length < REQUEST && !strstr(request, "\r\n\r\n"));
    request[length] = 0;
    if (length == 0)
        return;
    if (!strstr(request, "\r\n\r\n"))
        request[0] = 0;                 /* none that is whole */
    int status = respond(request, body, sizeof body);
    sign(body, signature);
    int size = snprintf(answer, sizeof answer,
                        "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                        "Tracon-Signature: %s\r\nConnection: close\r\n\r\n%s", status,
                        status == 200 ? "OK" : status == 403 ? "Forbidden"
                        : status == 405 ? "Method Not Allowed"
                        : status == 409 ? "Conflict" : "Bad Request",
                        status == 200 ? "application/json" : "text/plain",
                        strlen(body), signature, body);
    send(client, answer, size, MSG_NOSIGNAL);
    shutdown(client, SHUT_WR);
    /* with bytes unread, closing would take the answer away from the client */
    while (recv(client, body, sizeof body, MSG_DONTWAIT) > 0)
        ;
}

static void listen_for_ever(in_addr_t where)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(atoi(port)),
                               .sin_addr = {where}};
    struct timeval limit = {1, 0};
    int on = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&name, sizeof name) || listen(listener, 1024))
        fatal("port %s: %s: set another port", port, strerror(errno));
    printf("sensor: listens on port %s; %lu integers, disk: %s\n", port, most_integers,
           reader < 0 ? "none" : "yes");
    fflush(stdout);
    for (;;) {
        int client = accept(listener, NULL, NULL);
        if (client < 0) {
            usleep(10000);              /* too little memory for now */
            continue;
        }
        setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
        serve(client);
        close(client);
    }
}

/* What a sensor has: settings, memory, a disk. */

static void read_settings(const char *path)
{
    const struct { const char *name; char *value; } known[] = {
        {"secret", secret}, {"address", address}, {"gateway", gateway}, {"port", port},
        {"mtu", mtu}};
    char line[1024];
    FILE *file = fopen(path, "r");
    if (!file)
        fatal("%s: %s: give lines key=value there", path, strerror(errno));
    while (fgets(line, sizeof line, file)) {
        size_t length = strlen(line);
        while (length && isspace((unsigned char)line[length - 1]))
            line[--length] = 0;
        char *value = strchr(line, '=');
        if (!value || line[0] == '#')
            continue;
        *value++ = 0;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            if (!strcmp(line, known[i].name))
                snprintf(known[i].value, LINE, "%.*s", LINE - 1, value);
    }
    fclose(file);
    if (strlen(secret) != 64 || strspn(secret, "0123456789abcdefABCDEF") != 64)
        fatal("%s: secret has %zu characters: give 64 hexadecimal digits", path, strlen(secret));
    for (int i = 0; i < 32; i++)
        sscanf(secret + 2 * i, "%2hhx", key + i);
    if (atoi(port) < 1 || atoi(port) > 65535)
        fatal("%s: port=%s: give 1 to 65535", path, port);
}

static void find_memory(void)
{
    char line[256];
    unsigned long kilobytes = 0;
    FILE *file = fopen("/proc/meminfo", "r");
    while (file && fgets(line, sizeof line, file) &&
           sscanf(line, "MemFree: %lu", &kilobytes) != 1)
        ;
    if (file)
        fclose(file);
    uint64_t bytes = kilobytes * 1024ul;
    most_integers = bytes > KERNEL ? (bytes - KERNEL) / sizeof *array : 0;
    if (most_integers > MOST_INTEGERS)
        most_integers = MOST_INTEGERS;
    if (most_integers < 1024)
        fatal("%lu KiB of memory are free: give this VM more", kilobytes);
    array = mmap(NULL, most_integers * sizeof *array, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (array == MAP_FAILED)
        fatal("%lu integers: %s: give this VM more memory", most_integers, strerror(errno));
    /* Whether large pages are to be had differs from boot to boot, and so would readings. */
    madvise(array, most_integers * sizeof *array, MADV_NOHUGEPAGE);
}

static int open_direct(const char *path, int flags)
{
    int disk = open(path, flags | O_DIRECT);
    return disk < 0 && errno == EINVAL ? open(path, flags) : disk;
}

/* Reads shall find blocks that were written, and that nothing could compress. */
static int write_first_half(void)
{
    seed(0);
    for (uint64_t at = 0; at < region; at += sizeof block) {
        uint64_t left = region - at, size = left < sizeof block ? left : sizeof block;
        for (size_t i = 0; i < sizeof block / sizeof rng; i++)
            ((uint64_t *)block)[i] = draw();
        if (pwrite(reader, block, size, at) != (ssize_t)size)
            return 0;
    }
    return !fsync(reader);
}

static void use_disk(const char *path)
{
    struct stat st;
    uint64_t bytes = 0;
    reader = open_direct(path, O_RDWR);
    writer = open_direct(path, O_RDWR | O_DSYNC);
    if (reader >= 0 && !fstat(reader, &st)) {
        bytes = st.st_size;
        if (S_ISBLK(st.st_mode))
            ioctl(reader, BLKGETSIZE64, &bytes);
    }
    write_base = bytes / 2 / BLOCK * BLOCK;
    region = write_base < REGION ? write_base : REGION;
    if (writer < 0 || !region || !write_first_half()) {
        fprintf(stderr, "sensor: %s of %lu bytes cannot be used: %s\n", path, bytes,
                strerror(errno));
        reader = -1;
    }
}

/* Process 1. */

static void load_modules(void)
{
    char name[LINE], path[2 * LINE];
    FILE *file = fopen("/modules/order", "r");
    while (file && fscanf(file, "%127s", name) == 1) {
        snprintf(path, sizeof path, "/modules/%s", name);
        int module = open(path, O_RDONLY);
        if (syscall(SYS_finit_module, module, "", 0) && errno != EEXIST)
            fprintf(stderr, "sensor: module %s: %s\n", name, strerror(errno));
        close(module);
        unlink(path);                   /* its memory is of more use free */
    }
    if (file)
        fclose(file);
}

static int is_config_drive(const char *device)
{
    char volume[2048] = "";
    int fd = open(device, O_RDONLY);
    int found = fd >= 0 && pread(fd, volume, sizeof volume, 16 * 2048) == sizeof volume
        && !memcmp(volume + 1, "CD001", 5) && !strncasecmp(volume + 40, "config-2", 8);
    close(fd);
    return found;
}

/* The block device of this kind, the first by name; whether there is one. */
static int find_device(int config_drive, char *device)
{
    struct dirent **names;
    int found = 0, count = scandir("/sys/block", &names, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        char path[LINE];
        snprintf(path, sizeof path, "/dev/%.100s", names[i]->d_name);
        int disk = !strncmp(names[i]->d_name, "vd", 2);
        if (!found && names[i]->d_name[0] != '.' && (config_drive || disk)
            && is_config_drive(path) == config_drive) {
            snprintf(device, LINE, "%s", path);
            found = 1;
        }
        free(names[i]);
    }
    if (count >= 0)
        free(names);
    return found;
}

static void read_config_drive(void)
{
    char device[LINE];
    uint64_t deadline = now() + PATIENCE;
    while (!find_device(1, device) || mount(device, "/mnt", "iso9660", MS_RDONLY, "")) {
        if (now() > deadline)
            fatal("no config drive: boot this VM with one that has user data");
        usleep(100000);
    }
    read_settings("/mnt/openstack/latest/user_data");
    umount("/mnt");
}

static struct ifreq request_for(const char *interface)
{
    struct ifreq request = {0};
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", interface);
    return request;
}

static void set_address(int control, const char *interface, unsigned long what, in_addr_t value)
{
    struct ifreq request = request_for(interface);
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr = {value}};
    memcpy(&request.ifr_addr, &name, sizeof name);
    if (ioctl(control, what, &request))
        fatal("address=%s on %s: %s: give one as 10.0.0.5/24", address, interface,
              strerror(errno));
}

static void bring_up(int control, const char *interface)
{
    struct ifreq request = request_for(interface);
    ioctl(control, SIOCGIFFLAGS, &request);
    request.ifr_flags |= IFF_UP | IFF_RUNNING;
    if (ioctl(control, SIOCSIFFLAGS, &request))
        fatal("interface %s: %s", interface, strerror(errno));
}

/* The first ethernet interface; whether there is one. */
static int find_interface(int control, char *interface)
{
    for (int index = 1; index < 64; index++) {
        struct ifreq request = {.ifr_ifindex = index};
        if (!ioctl(control, SIOCGIFNAME, &request) && !ioctl(control, SIOCGIFHWADDR, &request)
            && request.ifr_hwaddr.sa_family == ARPHRD_ETHER) {
            snprintf(interface, IFNAMSIZ, "%s", request.ifr_name);
            return 1;
        }
    }
    return 0;
}

static void set_up_network(void)
{
    char interface[IFNAMSIZ], *slash = strchr(address, '/');
    int bits = slash ? atoi(slash + 1) : 0, control = socket(AF_INET, SOCK_DGRAM, 0);
    struct in_addr own, router;
    uint64_t deadline = now() + PATIENCE;
    if (slash)
        *slash = 0;
    if (!inet_aton(address, &own) || bits < 1 || bits > 32)
        fatal("address=%s with %d bits: give one as 10.0.0.5/24", address, bits);
    while (!find_interface(control, interface)) {
        if (now() > deadline)
            fatal("no network interface: boot this VM with a port");
        usleep(100000);
    }
    bring_up(control, "lo");
    if (atoi(mtu) > 0) {
        struct ifreq request = request_for(interface);
        request.ifr_mtu = atoi(mtu);
        if (ioctl(control, SIOCSIFMTU, &request))
            fatal("mtu=%s on %s: %s: give what its network has", mtu, interface,
                  strerror(errno));
    }
    set_address(control, interface, SIOCSIFADDR, own.s_addr);
    set_address(control, interface, SIOCSIFNETMASK, htonl(0xffffffffu << (32 - bits)));
    bring_up(control, interface);
    if (*gateway) {
        struct rtentry route = {.rt_flags = RTF_UP | RTF_GATEWAY};
        struct sockaddr_in name = {.sin_family = AF_INET};
        memcpy(&route.rt_dst, &name, sizeof name);
        memcpy(&route.rt_genmask, &name, sizeof name);
        if (!inet_aton(gateway, &router))
            fatal("gateway=%s: give an address as 10.0.0.1", gateway);
        name.sin_addr = router;
        memcpy(&route.rt_gateway, &name, sizeof name);
        if (ioctl(control, SIOCADDRT, &route))
            fatal("gateway=%s: %s: give one in the network of address=%s/%d", gateway,
                  strerror(errno), address, bits);
    }
    close(control);
}

static void write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY);
    if (write(fd, text, strlen(text)) < 0)
        fprintf(stderr, "sensor: %s: %s\n", path, strerror(errno));
    close(fd);
}

static void boot(void)
{
    char device[LINE];
    mount("proc", "/proc", "proc", 0, "");
    mount("sysfs", "/sys", "sysfs", 0, "");
    mount("dev", "/dev", "devtmpfs", 0, "");
    int console = open("/dev/console", O_RDWR);
    for (int fd = 0; fd < 3; fd++)
        dup2(console, fd);
    load_modules();
    /* the kernel has them off where memory is small */
    write_text("/sys/kernel/mm/transparent_hugepage/enabled", "madvise");
    read_config_drive();
    set_up_network();
    if (find_device(0, device))
        use_disk(device);
}

int main(int argc, char **argv)
{
    if (getpid() == 1) {
        boot();
    } else if (argc >= 3 && !strcmp(argv[1], "--serve")) {
        read_settings(argv[2]);
        if (argc > 3)
            use_disk(argv[3]);
    } else {
        fprintf(stderr, "usage: sensor --serve SETTINGS [DISK]\n");
        return 2;
    }
    find_memory();
    listen_for_ever(htonl(getpid() == 1 ? INADDR_ANY : INADDR_LOOPBACK));
}
