/* Stands between a process and libc: records what it writes, and makes calls fail.

   Loaded with LD_PRELOAD, it takes the place of libc's functions. A process that runs already loads
   it with dlopen and calls `syscalls_hook`, which directs the libraries that are loaded by then to it.

   Recording: `syscalls_record` names a directory and a file that grows by a record for each call
   below the directory that succeeded, in the order in which the calls took effect: one lock is held
   over a call and its record. POWER_ROOT and POWER_LOG do the same from the start. A call that
   changes files in a way which is not recorded here becomes a record of its own kind, so that nobody
   trusts the rest. A record: struct record, then the path, the second path, and the data.

   Failing: `syscalls_fail` names a call, a pattern of paths and an error.

   What libc does inside itself, as fwrite does, is neither recorded nor failed.
*/
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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
static void *real(const char *name) {
    static void *libc;
    if (!libc) libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    return dlsym(libc, name);
}

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

/* Record what happens below a directory from now on. NULL as the directory: record nothing. */
int syscalls_record(const char *above, const char *log) {
    struct stat found;
    find_calls();
    pthread_mutex_lock(&lock);
    if (journal >= 0) close(journal);
    journal = -1;
    memset(inodes, 0, sizeof inodes);
    if (above && !stat(above, &found)) {
        device = found.st_dev;
        root_length = strlen(strcpy(root, above));
        int file = real_openat(AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        journal = fcntl(file, F_DUPFD_CLOEXEC, 900);
        close(file);
    }
    pthread_mutex_unlock(&lock);
    return journal >= 0;
}

__attribute__((constructor)) static void begin(void) {
    const char *log = getenv("POWER_LOG"), *above = getenv("POWER_ROOT");
    find_calls();
    if (log && above) syscalls_record(above, log);
}

enum call { CALL_WRITE, CALL_SYNC, CALL_RENAME, CALL_UNLINK, CALL_TRUNCATE, CALL_READ, CALL_OPEN };

/* Fails `times` calls after the first `passed`; `after` it was done, or instead of it. */
static struct fault {
    enum call call;
    char pattern[512];
    long passed, times;
    int error, after;
    long failed;
} faults[8];
static int n_faults;

/* Make calls fail whose path matches a pattern of the shell. Returns the number of the fault. */
int syscalls_fail(int call, const char *pattern, long passed, long times, int error, int after) {
    pthread_mutex_lock(&lock);
    int number = n_faults < 8 ? n_faults : -1;
    if (number >= 0) {
        struct fault made = {call, "", passed, times, error, after, 0};
        snprintf(made.pattern, sizeof made.pattern, "%s", pattern);
        faults[n_faults++] = made;
    }
    pthread_mutex_unlock(&lock);
    return number;
}

/* How many calls a fault has failed. */
long syscalls_failed(int number) { return faults[number].failed; }

/* Let nothing fail any more. */
void syscalls_heal(void) { n_faults = 0; }

static int paused;

/* Let nothing fail for a while (1), or go on (-1). */
void syscalls_pause(int change) { paused += change; }

/* The fault that a call meets; NULL if it has none. path: NULL for that of the descriptor. */
static struct fault *met(enum call call, int file, const char *path) {
    char link[64], whole[PATH_MAX];
    if (!n_faults || paused) return NULL;
    int saved = errno;
    if (!path) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", file);
        ssize_t n = readlink(link, whole, PATH_MAX - 1);
        whole[n < 0 ? 0 : n] = 0;
        path = whole;
    }
    struct fault *found = NULL;
    pthread_mutex_lock(&lock);
    for (int k = 0; k < n_faults && !found; k++) {
        struct fault *fault = &faults[k];
        if (fault->call != call || fnmatch(fault->pattern, path, 0)) continue;
        if (fault->passed > 0) fault->passed--;
        else if (fault->failed < fault->times) fault->failed++, found = fault;
    }
    pthread_mutex_unlock(&lock);
    errno = saved;
    return found;
}

static int refused(const struct fault *fault) {
    errno = fault->error;
    return -1;
}

/* The body of a function that does `call`, unless it is to fail. */
#define UNLESS_FAILED(type, call, file, path, call_done)                   \
    struct fault *fault = met(call, file, path);                           \
    if (fault && !fault->after) return refused(fault);                     \
    type result = call_done;                                               \
    return fault ? refused(fault) : result;

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

static int do_open(int folder, const char *path, int flags, mode_t mode) {
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

static int opened(int folder, const char *path, int flags, mode_t mode) {
    UNLESS_FAILED(int, CALL_OPEN, -1, path, do_open(folder, path, flags, mode))
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

static ssize_t do_write(int file, const void *data, size_t length) {
    if (!is_below(file)) return real_write(file, data, length);
    pthread_mutex_lock(&lock);
    ssize_t n = real_write(file, data, length);
    if (n > 0) note(WRITE, inodes[file], lseek(file, 0, SEEK_CUR) - n, NULL, NULL, data, n);
    pthread_mutex_unlock(&lock);
    return n;
}

ssize_t write(int file, const void *data, size_t length) {
    UNLESS_FAILED(ssize_t, CALL_WRITE, file, NULL, do_write(file, data, length))
}

static ssize_t do_pwrite(int file, const void *data, size_t length, off64_t offset) {
    if (!is_below(file)) return real_pwrite(file, data, length, offset);
    pthread_mutex_lock(&lock);
    ssize_t n = real_pwrite(file, data, length, offset);
    if (n > 0) note(WRITE, inodes[file], offset, NULL, NULL, data, n);
    pthread_mutex_unlock(&lock);
    return n;
}
ssize_t pwrite64(int file, const void *data, size_t length, off64_t offset) {
    UNLESS_FAILED(ssize_t, CALL_WRITE, file, NULL, do_pwrite(file, data, length, offset))
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
int ftruncate64(int file, off64_t length) {
    UNLESS_FAILED(int, CALL_TRUNCATE, file, NULL, cut(REAL(ftruncate64), file, length))
}
int ftruncate(int file, off_t length) { return ftruncate64(file, length); }

ssize_t read(int file, void *data, size_t length) {
    UNLESS_FAILED(ssize_t, CALL_READ, file, NULL, REAL(read)(file, data, length))
}
ssize_t pread64(int file, void *data, size_t length, off64_t offset) {
    UNLESS_FAILED(ssize_t, CALL_READ, file, NULL, REAL(pread64)(file, data, length, offset))
}
ssize_t pread(int file, void *data, size_t length, off_t offset) { return pread64(file, data, length, offset); }

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
int fsync(int file) { UNLESS_FAILED(int, CALL_SYNC, file, NULL, synced(REAL(fsync), file)) }
int fdatasync(int file) { UNLESS_FAILED(int, CALL_SYNC, file, NULL, synced(REAL(fdatasync), file)) }

static int do_rename(int folder, const char *path, int folder2, const char *path2, unsigned flags) {
    char whole[PATH_MAX], whole2[PATH_MAX];
    const char *from = below(folder, path, whole), *to = below(folder2, path2, whole2);
    pthread_mutex_lock(&lock);
    int result = REAL(renameat2)(folder, path, folder2, path2, flags);
    if (!result && from && to && !flags) note(RENAME, 0, 0, from, to, NULL, 0);
    else if (!result && (from || to)) note(UNKNOWN, 0, 0, "rename", NULL, NULL, 0);
    pthread_mutex_unlock(&lock);
    return result;
}
int renameat2(int folder, const char *path, int folder2, const char *path2, unsigned flags) {
    UNLESS_FAILED(int, CALL_RENAME, -1, path2, do_rename(folder, path, folder2, path2, flags))
}
int renameat(int folder, const char *path, int folder2, const char *path2) {
    return renameat2(folder, path, folder2, path2, 0);
}
int rename(const char *path, const char *path2) { return renameat(AT_FDCWD, path, AT_FDCWD, path2); }

static int do_unlink(int folder, const char *path, int flags) {
    char whole[PATH_MAX];
    const char *name = below(folder, path, whole);
    pthread_mutex_lock(&lock);
    int result = REAL(unlinkat)(folder, path, flags);
    if (!result && name) note(flags & AT_REMOVEDIR ? RMDIR : UNLINK, 0, 0, name, NULL, NULL, 0);
    pthread_mutex_unlock(&lock);
    return result;
}
int unlinkat(int folder, const char *path, int flags) {
    char whole[PATH_MAX], link[64];
    if (n_faults && folder != AT_FDCWD && path[0] != '/') { /* a fault is met by its whole path */
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t n = readlink(link, whole, PATH_MAX - 1);
        if (n > 0) snprintf(whole + n, sizeof whole - n, "/%s", path);
    } else snprintf(whole, sizeof whole, "%s", path);
    UNLESS_FAILED(int, CALL_UNLINK, -1, whole, do_unlink(folder, path, flags))
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

/* The functions above, as a library refers to them. */
static const struct { const char *name; void *here; } hooked[] = {
#define HOOKED(name) {#name, name}
    HOOKED(open), HOOKED(open64), HOOKED(openat), HOOKED(openat64), HOOKED(creat), HOOKED(creat64), HOOKED(write),
    HOOKED(pwrite), HOOKED(pwrite64), HOOKED(ftruncate), HOOKED(ftruncate64), HOOKED(read), HOOKED(pread),
    HOOKED(pread64), HOOKED(fsync), HOOKED(fdatasync), HOOKED(rename), HOOKED(renameat), HOOKED(renameat2),
    HOOKED(unlink), HOOKED(unlinkat), HOOKED(rmdir), HOOKED(mkdir), HOOKED(mkdirat), HOOKED(sendfile),
    HOOKED(sendfile64), HOOKED(writev), HOOKED(pwritev), HOOKED(pwritev64), HOOKED(fallocate), HOOKED(fallocate64),
    HOOKED(posix_fallocate), HOOKED(posix_fallocate64), HOOKED(copy_file_range), HOOKED(truncate), HOOKED(truncate64),
    HOOKED(link), HOOKED(linkat), HOOKED(symlink), HOOKED(symlinkat),
};

static int hook_entries(ElfW(Addr) base, const ElfW(Rela) *entries, size_t n_bytes, const ElfW(Sym) *symbols,
                        const char *names) {
    int n = 0;
    for (size_t k = 0; k < n_bytes / sizeof *entries; k++) {
        size_t symbol = ELF64_R_SYM(entries[k].r_info);
        for (size_t h = 0; symbol && h < sizeof hooked / sizeof *hooked; h++) {
            if (strcmp(names + symbols[symbol].st_name, hooked[h].name)) continue;
            void **place = (void **)(base + entries[k].r_offset);
            char *page = (char *)((uintptr_t)place & ~(uintptr_t)(getpagesize() - 1));
            if (mprotect(page, getpagesize(), PROT_READ | PROT_WRITE)) continue;
            *place = hooked[h].here;
            n++;
        }
    }
    return n;
}

/* Direct a library's references to libc's functions here. */
static int hook_library(struct dl_phdr_info *library, size_t size, void *count) {
    Dl_info own;
    (void)size;
    if (!dladdr((void *)hook_library, &own) || !strcmp(library->dlpi_name, own.dli_fname)) return 0;
    if (strstr(library->dlpi_name, "/libc.so") || strstr(library->dlpi_name, "/ld-") || strstr(library->dlpi_name, "vdso"))
        return 0;
    const ElfW(Dyn) *dynamic = NULL;
    for (int k = 0; k < library->dlpi_phnum; k++)
        if (library->dlpi_phdr[k].p_type == PT_DYNAMIC)
            dynamic = (const void *)(library->dlpi_addr + library->dlpi_phdr[k].p_vaddr);
    const ElfW(Sym) *symbols = NULL;
    const ElfW(Rela) *data = NULL, *calls = NULL;
    const char *names = NULL;
    size_t n_data = 0, n_calls = 0;
    for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
        if (dynamic->d_tag == DT_SYMTAB) symbols = (const void *)dynamic->d_un.d_ptr;
        if (dynamic->d_tag == DT_STRTAB) names = (const void *)dynamic->d_un.d_ptr;
        if (dynamic->d_tag == DT_RELA) data = (const void *)dynamic->d_un.d_ptr;
        if (dynamic->d_tag == DT_JMPREL) calls = (const void *)dynamic->d_un.d_ptr;
        if (dynamic->d_tag == DT_RELASZ) n_data = dynamic->d_un.d_val;
        if (dynamic->d_tag == DT_PLTRELSZ) n_calls = dynamic->d_un.d_val;
    }
    if (!symbols || !names || (uintptr_t)symbols < library->dlpi_addr) return 0;
    *(int *)count += hook_entries(library->dlpi_addr, data, n_data, symbols, names);
    *(int *)count += hook_entries(library->dlpi_addr, calls, n_calls, symbols, names);
    return 0;
}

/* Direct the libraries that are loaded by now here; returns how many references changed. */
int syscalls_hook(void) {
    int count = 0;
    find_calls();
    dl_iterate_phdr(hook_library, &count);
    return count;
}
