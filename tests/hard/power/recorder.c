/* Records what a process writes below one directory, and what it syncs.

   Loaded with LD_PRELOAD. POWER_ROOT names the directory, POWER_LOG the file that grows by a record
   for each call that succeeded, in the order in which the calls took effect: one lock is held over a
   call and its record. A call that changes files in a way which is not recorded here becomes a
   record of its own kind, so that nobody trusts the rest.

   A record: struct record, then the path, the second path, and the data.
*/
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { CREATE = 1, TRUNCATE, WRITE, SYNC, SYNC_DIRECTORY, RENAME, UNLINK, MKDIR, RMDIR, UNKNOWN };

struct record {
    uint32_t kind, path, path2, data;
    uint64_t inode, offset;
};

#define MOST_FILES 65536
static ino_t inodes[MOST_FILES]; /* of descriptors below the root; 0 of others */
static dev_t device;
static char root[PATH_MAX];
static size_t root_length;
static int journal = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define REAL(name) ((__typeof__(&name))real(#name))
static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off64_t);
static int (*real_openat)(int, const char *, int, ...);

/* Other libraries may open files before `begin`. */
static void find_calls(void) {
    if (real_openat) return;
    real_write = real("write");
    real_pwrite = real("pwrite64");
    real_openat = real("openat64");
}

__attribute__((constructor)) static void begin(void) {
    const char *log = getenv("POWER_LOG"), *above = getenv("POWER_ROOT");
    struct stat found;
    find_calls();
    if (!log || !above || stat(above, &found)) return;
    device = found.st_dev;
    root_length = strlen(strcpy(root, above));
    int file = real_openat(AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    journal = fcntl(file, F_DUPFD_CLOEXEC, 900);
    close(file);
}

static void put(const void *data, size_t length) {
    for (const char *at = data; length;) {
        ssize_t n = real_write(journal, at, length);
        if (n < 0) abort();
        at += n, length -= n;
    }
}

static void note(enum kind kind, ino_t inode, uint64_t offset, const char *path, const char *path2,
                 const void *data, size_t length) {
    int saved = errno;
    struct record record = {kind, path ? strlen(path) : 0, path2 ? strlen(path2) : 0, length, inode, offset};
    put(&record, sizeof record);
    put(path, record.path), put(path2, record.path2), put(data, length);
    errno = saved;
}

/* The path below the root, or NULL where it is elsewhere. */
static const char *below(int folder, const char *path, char *whole) {
    if (journal < 0) return NULL;
    char link[64];
    if (path[0] == '/') {
        if (strlen(path) >= PATH_MAX) return NULL;
        strcpy(whole, path);
    } else {
        snprintf(link, sizeof link, folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", folder);
        ssize_t n = readlink(link, whole, PATH_MAX - 1);
        if (n < 0 || n + strlen(path) + 2 > PATH_MAX) return NULL;
        whole[n] = '/';
        strcpy(whole + n + 1, path);
    }
    if (strncmp(whole, root, root_length) || (whole[root_length] && whole[root_length] != '/')) return NULL;
    return whole[root_length] ? whole + root_length + 1 : whole + root_length;
}

static int opened(int folder, const char *path, int flags, mode_t mode) {
    char whole[PATH_MAX];
    find_calls();
    /* After a loss of power it is another one. */
    if (getenv("POWER_BOOT") && !strcmp(path, "/proc/sys/kernel/random/boot_id")) path = getenv("POWER_BOOT");
    const char *name = below(folder, path, whole);
    if (!name) return real_openat(folder, path, flags, mode);
    pthread_mutex_lock(&lock);
    struct stat found;
    int there = !fstatat(folder, path, &found, 0);
    int file = real_openat(folder, path, flags, mode);
    if (file >= 0 && file < MOST_FILES && !fstat(file, &found)) {
        inodes[file] = found.st_ino;
        if ((flags & O_CREAT) && !there) note(CREATE, found.st_ino, 0, name, NULL, NULL, 0);
        else if (flags & O_TRUNC) note(TRUNCATE, found.st_ino, 0, NULL, NULL, NULL, 0);
    }
    pthread_mutex_unlock(&lock);
    return file;
}

#define OPEN(name, parameters, folder)                                     \
    int name parameters {                                                  \
        mode_t mode = 0;                                                   \
        if (flags & O_CREAT) {                                             \
            va_list more;                                                  \
            va_start(more, flags);                                         \
            mode = va_arg(more, mode_t);                                   \
            va_end(more);                                                  \
        }                                                                  \
        return opened(folder, path, flags, mode);                          \
    }
OPEN(open, (const char *path, int flags, ...), AT_FDCWD)
OPEN(open64, (const char *path, int flags, ...), AT_FDCWD)
OPEN(openat, (int folder, const char *path, int flags, ...), folder)
OPEN(openat64, (int folder, const char *path, int flags, ...), folder)

int creat(const char *path, mode_t mode) { return opened(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return creat(path, mode); }

/* Whether a descriptor is of a file below the root: it may have been closed and used again. */
static int is_below(int file) {
    struct stat found;
    find_calls();
    return journal >= 0 && file >= 0 && file < MOST_FILES && inodes[file] && !fstat(file, &found) &&
           found.st_ino == inodes[file] && found.st_dev == device;
}

ssize_t write(int file, const void *data, size_t length) {
    if (!is_below(file)) return real_write(file, data, length);
    pthread_mutex_lock(&lock);
    ssize_t n = real_write(file, data, length);
    if (n > 0) note(WRITE, inodes[file], lseek(file, 0, SEEK_CUR) - n, NULL, NULL, data, n);
    pthread_mutex_unlock(&lock);
    return n;
}

ssize_t pwrite64(int file, const void *data, size_t length, off64_t offset) {
    if (!is_below(file)) return real_pwrite(file, data, length, offset);
    pthread_mutex_lock(&lock);
    ssize_t n = real_pwrite(file, data, length, offset);
    if (n > 0) note(WRITE, inodes[file], offset, NULL, NULL, data, n);
    pthread_mutex_unlock(&lock);
    return n;
}
ssize_t pwrite(int file, const void *data, size_t length, off_t offset) { return pwrite64(file, data, length, offset); }

static int cut(int (*function)(int, off64_t), int file, off64_t length) {
    if (!is_below(file)) return function(file, length);
    pthread_mutex_lock(&lock);
    int result = function(file, length);
    if (!result) note(TRUNCATE, inodes[file], length, NULL, NULL, NULL, 0);
    pthread_mutex_unlock(&lock);
    return result;
}
int ftruncate64(int file, off64_t length) { return cut(REAL(ftruncate64), file, length); }
int ftruncate(int file, off_t length) { return cut(REAL(ftruncate64), file, length); }

static int synced(int (*function)(int), int file) {
    if (!is_below(file)) return function(file);
    pthread_mutex_lock(&lock);
    struct stat found;
    int result = function(file);
    if (!result && !fstat(file, &found))
        note(S_ISDIR(found.st_mode) ? SYNC_DIRECTORY : SYNC, inodes[file], 0, NULL, NULL, NULL, 0);
    pthread_mutex_unlock(&lock);
    return result;
}
int fsync(int file) { return synced(REAL(fsync), file); }
int fdatasync(int file) { return synced(REAL(fdatasync), file); }

int renameat2(int folder, const char *path, int folder2, const char *path2, unsigned flags) {
    char whole[PATH_MAX], whole2[PATH_MAX];
    const char *from = below(folder, path, whole), *to = below(folder2, path2, whole2);
    pthread_mutex_lock(&lock);
    int result = REAL(renameat2)(folder, path, folder2, path2, flags);
    if (!result && from && to && !flags) note(RENAME, 0, 0, from, to, NULL, 0);
    else if (!result && (from || to)) note(UNKNOWN, 0, 0, "rename", NULL, NULL, 0);
    pthread_mutex_unlock(&lock);
    return result;
}
int renameat(int folder, const char *path, int folder2, const char *path2) {
    return renameat2(folder, path, folder2, path2, 0);
}
int rename(const char *path, const char *path2) { return renameat(AT_FDCWD, path, AT_FDCWD, path2); }

int unlinkat(int folder, const char *path, int flags) {
    char whole[PATH_MAX];
    const char *name = below(folder, path, whole);
    pthread_mutex_lock(&lock);
    int result = REAL(unlinkat)(folder, path, flags);
    if (!result && name) note(flags & AT_REMOVEDIR ? RMDIR : UNLINK, 0, 0, name, NULL, NULL, 0);
    pthread_mutex_unlock(&lock);
    return result;
}
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

int mkdirat(int folder, const char *path, mode_t mode) {
    char whole[PATH_MAX];
    const char *name = below(folder, path, whole);
    struct stat found;
    pthread_mutex_lock(&lock);
    int result = REAL(mkdirat)(folder, path, mode);
    if (!result && name && !fstatat(folder, path, &found, 0)) note(MKDIR, found.st_ino, 0, name, NULL, NULL, 0);
    pthread_mutex_unlock(&lock);
    return result;
}
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

/* Python copies files with it; what was written is read from where it came from. */
ssize_t sendfile64(int file, int from, off64_t *offset, size_t length) {
    if (!is_below(file)) return REAL(sendfile64)(file, from, offset, length);
    pthread_mutex_lock(&lock);
    ssize_t n = REAL(sendfile64)(file, from, offset, length);
    if (n > 0) {
        char *data = malloc(n);
        off64_t end = offset ? *offset : lseek(from, 0, SEEK_CUR);
        if (!data || pread(from, data, n, end - n) != n) abort();
        note(WRITE, inodes[file], lseek(file, 0, SEEK_CUR) - n, NULL, NULL, data, n);
        free(data);
    }
    pthread_mutex_unlock(&lock);
    return n;
}
ssize_t sendfile(int file, int from, off_t *offset, size_t length) { return sendfile64(file, from, offset, length); }

/* What is not modelled. */
#define UNMODELLED(result, name, parameters, arguments, file)              \
    result name parameters {                                               \
        if (is_below(file)) {                                              \
            pthread_mutex_lock(&lock);                                     \
            note(UNKNOWN, 0, 0, #name, NULL, NULL, 0);                     \
            pthread_mutex_unlock(&lock);                                   \
        }                                                                  \
        return REAL(name) arguments;                                       \
    }
UNMODELLED(ssize_t, writev, (int file, const struct iovec *v, int n), (file, v, n), file)
UNMODELLED(ssize_t, pwritev, (int file, const struct iovec *v, int n, off_t o), (file, v, n, o), file)
UNMODELLED(ssize_t, pwritev64, (int file, const struct iovec *v, int n, off64_t o), (file, v, n, o), file)
UNMODELLED(int, fallocate, (int file, int mode, off_t o, off_t n), (file, mode, o, n), file)
UNMODELLED(int, fallocate64, (int file, int mode, off64_t o, off64_t n), (file, mode, o, n), file)
UNMODELLED(int, posix_fallocate, (int file, off_t o, off_t n), (file, o, n), file)
UNMODELLED(int, posix_fallocate64, (int file, off64_t o, off64_t n), (file, o, n), file)
UNMODELLED(ssize_t, copy_file_range, (int from, off64_t *a, int file, off64_t *b, size_t n, unsigned f),
           (from, a, file, b, n, f), file)

#define UNMODELLED_PATH(name, parameters, arguments, folder, path)         \
    int name parameters {                                                  \
        char whole[PATH_MAX];                                              \
        if (below(folder, path, whole)) {                                  \
            pthread_mutex_lock(&lock);                                     \
            note(UNKNOWN, 0, 0, #name, NULL, NULL, 0);                     \
            pthread_mutex_unlock(&lock);                                   \
        }                                                                  \
        return REAL(name) arguments;                                       \
    }
UNMODELLED_PATH(truncate, (const char *path, off_t n), (path, n), AT_FDCWD, path)
UNMODELLED_PATH(truncate64, (const char *path, off64_t n), (path, n), AT_FDCWD, path)
UNMODELLED_PATH(link, (const char *from, const char *path), (from, path), AT_FDCWD, path)
UNMODELLED_PATH(linkat, (int a, const char *from, int folder, const char *path, int f), (a, from, folder, path, f),
                folder, path)
UNMODELLED_PATH(symlink, (const char *from, const char *path), (from, path), AT_FDCWD, path)
UNMODELLED_PATH(symlinkat, (const char *from, int folder, const char *path), (from, folder, path), folder, path)
