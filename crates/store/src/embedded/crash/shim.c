/* Stands between a process and its files, so that a test can take away everything that was not
 * synced. Every change below SHIM_DIR is first noted in SHIM_LOG with what it takes to undo it;
 * a sync is noted too. The log outlives the process, and the test undoes what no sync covers.
 *
 * SHIM_KILL_AT=n      the process dies before the n-th change or sync
 * SHIM_FAIL_SYNC_AT=n the n-th sync fails, and what it should have kept is lost for good
 * SHIM_SPACE=n        the disk is full after n written bytes
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { WRITE = 1, TRUNCATE, SYNC, LOST, CREATE, RENAME, UNLINK, MKDIR, RMDIR };

struct head {
    uint32_t kind, path_len, other_len, pad;
    uint64_t inode, offset, len, old_len, data_len;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *dir, *stash;
static int log_fd = -1;
static long changes, syncs, stashed, kill_at, fail_sync_at, space = -1;

static long number(const char *name, long otherwise) {
    const char *text = getenv(name);
    return text ? atol(text) : otherwise;
}

__attribute__((constructor)) static void begin(void) {
    dir = getenv("SHIM_DIR");
    stash = getenv("SHIM_STASH");
    kill_at = number("SHIM_KILL_AT", 0);
    fail_sync_at = number("SHIM_FAIL_SYNC_AT", 0);
    space = number("SHIM_SPACE", -1);
    if (dir)
        log_fd = syscall(SYS_openat, AT_FDCWD, getenv("SHIM_LOG"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

/* The absolute path, if it is one of ours. */
static const char *ours(int at, const char *path, char *out) {
    if (!dir)
        return NULL;
    if (path[0] == '/') {
        snprintf(out, 4096, "%s", path);
    } else {
        char link[64];
        snprintf(link, sizeof link, at == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", at);
        ssize_t n = syscall(SYS_readlinkat, AT_FDCWD, link, out, 2048);
        if (n < 0)
            return NULL;
        snprintf(out + n, 4096 - n, "/%s", path);
    }
    size_t n = strlen(dir);
    return strncmp(out, dir, n) == 0 && (out[n] == '/' || !out[n]) ? out : NULL;
}

static int ours_fd(int fd, struct stat *st) {
    char link[64], path[4096];
    if (!dir || fd == log_fd || syscall(SYS_fstat, fd, st) || !(S_ISREG(st->st_mode) || S_ISDIR(st->st_mode)))
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
    if (n < 0)
        return 0;
    path[n] = 0;
    n = strlen(dir);
    return strncmp(path, dir, n) == 0 && (path[n] == '/' || !path[n]);
}

static uint64_t parent_inode(const char *path) {
    char parent[4096];
    struct stat st;
    snprintf(parent, sizeof parent, "%s", path);
    *strrchr(parent, '/') = 0;
    return syscall(SYS_newfstatat, AT_FDCWD, parent, &st, 0) ? 0 : st.st_ino;
}

static int exists(const char *path, struct stat *st) {
    return syscall(SYS_newfstatat, AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Called with the lock held, before the change. */
static void note(enum kind kind, uint64_t inode, const char *path, const char *other, uint64_t offset,
                 uint64_t len, uint64_t old_len, const void *data, uint64_t data_len) {
    if (++changes == kill_at)
        syscall(SYS_kill, getpid(), SIGKILL);
    struct head head = {kind, path ? strlen(path) : 0, other ? strlen(other) : 0, 0,
                        inode, offset, len, old_len, data_len};
    struct iovec parts[] = {{&head, sizeof head},
                            {(void *)(path ? path : ""), head.path_len},
                            {(void *)(other ? other : ""), head.other_len},
                            {(void *)data, data_len}};
    if (syscall(SYS_writev, log_fd, parts, 4) < 0)
        abort();
}

/* A second name for a file that is about to lose its first. */
static const char *keep(const char *path, char *out) {
    snprintf(out, 4096, "%s/%d-%ld", stash, getpid(), stashed++);
    return syscall(SYS_linkat, AT_FDCWD, path, AT_FDCWD, out, 0) ? "" : out;
}

static void note_write(int fd, const struct stat *st, uint64_t offset, uint64_t len) {
    uint64_t old = offset < (uint64_t)st->st_size ? st->st_size - offset : 0;
    if (old > len)
        old = len;
    char *data = malloc(old + 1);
    /* The descriptor may be write-only. */
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    int again = syscall(SYS_openat, AT_FDCWD, link, O_RDONLY | O_CLOEXEC);
    ssize_t n = old ? syscall(SYS_pread64, again, data, old, offset) : 0;
    if (n < 0)
        abort();
    syscall(SYS_close, again);
    note(WRITE, st->st_ino, NULL, NULL, offset, len, st->st_size, data, n);
    free(data);
}

static void note_truncate(const char *path, const struct stat *st, uint64_t len) {
    uint64_t lost = len < (uint64_t)st->st_size ? st->st_size - len : 0;
    char *data = malloc(lost + 1);
    int again = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = lost ? syscall(SYS_pread64, again, data, lost, len) : 0;
    if (n < 0)
        abort();
    syscall(SYS_close, again);
    while (n > 0 && !data[n - 1])
        n--;
    note(TRUNCATE, st->st_ino, NULL, NULL, len, 0, st->st_size, data, n);
    free(data);
}

static long full(size_t wanted) {
    if (space < 0)
        return wanted;
    long room = space < (long)wanted ? space : (long)wanted;
    space -= room;
    return room;
}

static ssize_t write_at(int fd, const void *buf, size_t len, int64_t offset) {
    struct stat st;
    if (!ours_fd(fd, &st))
        return offset < 0 ? syscall(SYS_write, fd, buf, len) : syscall(SYS_pwrite64, fd, buf, len, offset);
    pthread_mutex_lock(&lock);
    syscall(SYS_fstat, fd, &st);
    long room = full(len);
    ssize_t result = -1;
    if (room == 0 && len > 0) {
        errno = ENOSPC;
    } else {
        uint64_t at = offset >= 0 ? (uint64_t)offset
                      : syscall(SYS_fcntl, fd, F_GETFL) & O_APPEND ? (uint64_t)st.st_size
                                                                   : (uint64_t)syscall(SYS_lseek, fd, 0, SEEK_CUR);
        note_write(fd, &st, at, room);
        result = offset < 0 ? syscall(SYS_write, fd, buf, room) : syscall(SYS_pwrite64, fd, buf, room, offset);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

ssize_t write(int fd, const void *buf, size_t len) { return write_at(fd, buf, len, -1); }
ssize_t pwrite(int fd, const void *buf, size_t len, off_t offset) { return write_at(fd, buf, len, offset); }
ssize_t pwrite64(int fd, const void *buf, size_t len, off64_t offset) { return write_at(fd, buf, len, offset); }

ssize_t writev(int fd, const struct iovec *parts, int count) {
    struct stat st;
    if (!ours_fd(fd, &st))
        return syscall(SYS_writev, fd, parts, count);
    for (int i = 0; i < count; i++)
        if (parts[i].iov_len)
            return write_at(fd, parts[i].iov_base, parts[i].iov_len, -1);
    return 0;
}

int ftruncate64(int fd, off64_t len) {
    struct stat st;
    if (!ours_fd(fd, &st))
        return syscall(SYS_ftruncate, fd, len);
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    pthread_mutex_lock(&lock);
    note_truncate(link, &st, len);
    int result = syscall(SYS_ftruncate, fd, len);
    pthread_mutex_unlock(&lock);
    return result;
}
int ftruncate(int fd, off_t len) { return ftruncate64(fd, len); }

static int sync_fd(int fd, long call) {
    struct stat st;
    if (!ours_fd(fd, &st))
        return syscall(call, fd);
    pthread_mutex_lock(&lock);
    int fails = ++syncs == fail_sync_at;
    note(fails ? LOST : SYNC, st.st_ino, NULL, NULL, 0, 0, 0, NULL, 0);
    pthread_mutex_unlock(&lock);
    /* Nothing need reach the disk: the machine stays up, only the log decides what lasts. */
    errno = EIO;
    return fails ? -1 : 0;
}
int fsync(int fd) { return sync_fd(fd, SYS_fsync); }
int fdatasync(int fd) { return sync_fd(fd, SYS_fdatasync); }

static int open_at(int at, const char *path, int flags, mode_t mode) {
    char full[4096];
    const char *known = flags & (O_CREAT | O_TRUNC) ? ours(at, path, full) : NULL;
    if (!known)
        return syscall(SYS_openat, at, path, flags, mode);
    struct stat st;
    pthread_mutex_lock(&lock);
    if (!exists(known, &st)) {
        if (flags & O_CREAT)
            note(CREATE, parent_inode(known), known, NULL, 0, 0, 0, NULL, 0);
    } else if (flags & O_TRUNC && st.st_size) {
        note_truncate(known, &st, 0);
    }
    int fd = syscall(SYS_openat, at, path, flags, mode);
    pthread_mutex_unlock(&lock);
    return fd;
}

#define MODE(flags)                                                                                                    \
    mode_t mode = 0;                                                                                                   \
    if (flags & (O_CREAT | __O_TMPFILE)) {                                                                             \
        va_list list;                                                                                                  \
        va_start(list, flags);                                                                                         \
        mode = va_arg(list, mode_t);                                                                                   \
        va_end(list);                                                                                                  \
    }
int open(const char *path, int flags, ...) { MODE(flags) return open_at(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags) return open_at(AT_FDCWD, path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { MODE(flags) return open_at(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { MODE(flags) return open_at(at, path, flags, mode); }

int rename(const char *from, const char *to) {
    char old[4096], new[4096], kept[4096];
    const char *known = ours(AT_FDCWD, from, old);
    if (!known || !ours(AT_FDCWD, to, new))
        return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    struct stat st;
    pthread_mutex_lock(&lock);
    const char *replaced = exists(new, &st) && S_ISREG(st.st_mode) ? keep(new, kept) : "";
    note(RENAME, parent_inode(new), old, new, 0, 0, 0, replaced, strlen(replaced));
    int result = syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    pthread_mutex_unlock(&lock);
    return result;
}

static int remove_at(int at, const char *path, int flags) {
    char full[4096], kept[4096];
    struct stat st;
    const char *known = ours(at, path, full);
    if (!known || !exists(known, &st))
        return syscall(SYS_unlinkat, at, path, flags);
    pthread_mutex_lock(&lock);
    if (flags & AT_REMOVEDIR) {
        note(RMDIR, parent_inode(known), known, NULL, 0, 0, 0, NULL, 0);
    } else {
        const char *second = keep(known, kept);
        note(UNLINK, parent_inode(known), known, second, 0, 0, 0, NULL, 0);
    }
    int result = syscall(SYS_unlinkat, at, path, flags);
    pthread_mutex_unlock(&lock);
    return result;
}
int unlink(const char *path) { return remove_at(AT_FDCWD, path, 0); }
int unlinkat(int at, const char *path, int flags) { return remove_at(at, path, flags); }
int rmdir(const char *path) { return remove_at(AT_FDCWD, path, AT_REMOVEDIR); }

int mkdir(const char *path, mode_t mode) {
    char full[4096];
    struct stat st;
    const char *known = ours(AT_FDCWD, path, full);
    if (!known || exists(known, &st))
        return syscall(SYS_mkdirat, AT_FDCWD, path, mode);
    pthread_mutex_lock(&lock);
    note(MKDIR, parent_inode(known), known, NULL, 0, 0, 0, NULL, 0);
    int result = syscall(SYS_mkdirat, AT_FDCWD, path, mode);
    pthread_mutex_unlock(&lock);
    return result;
}
