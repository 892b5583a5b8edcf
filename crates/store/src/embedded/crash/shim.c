/* Stands between a process and its files, so that a test can take away everything that was not
 * synced. Every change below SHIM_DIR is first noted in SHIM_LOG with what it takes to undo it;
 * a sync is noted too. The log outlives the process, and the test undoes what no sync covers.
 *
 * Not everybody asks the C library: tempfile renames by system calls of its own. Those are trapped
 * and noted as well; copies within the kernel are refused, so that they are made by writes; and
 * other ways to change a file end the process, because what is not seen would be taken for durable.
 *
 * SHIM_KILL_AT=n      the process dies before the n-th change or sync
 * SHIM_FAIL_SYNC_AT=n the n-th sync fails, and what it should have kept is lost for good
 * SHIM_SPACE=n        the disk is full after n written bytes
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <ucontext.h>
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

/* A last argument that the kernel ignores: a call of the shim's own. */
#define OWN 0x5417

#if defined(__x86_64__)
#define MACHINE AUDIT_ARCH_X86_64
#define RESULT(context) ((context)->uc_mcontext.gregs[REG_RAX])
#define ARGUMENT(context, n)                                                                                           \
    ((context)->uc_mcontext.gregs[(const int[]){REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8}[n]])
#elif defined(__aarch64__)
#define MACHINE AUDIT_ARCH_AARCH64
#define RESULT(context) ((context)->uc_mcontext.regs[0])
#define ARGUMENT(context, n) ((context)->uc_mcontext.regs[n])
#endif

static void trapped(int, siginfo_t *, void *);

static void watch_system_calls(void) {
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IF(value, then, otherwise) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, then, otherwise)
#define ANSWER(value) BPF_STMT(BPF_RET | BPF_K, value)
#define REFUSE(call, error) IF(call, 0, 1), ANSWER(SECCOMP_RET_ERRNO | error)
#define TRAP(call) IF(call, 0, 4), LOAD(args[5]), IF(OWN, 0, 1), ANSWER(SECCOMP_RET_ALLOW), ANSWER(SECCOMP_RET_TRAP)
    struct sock_filter filter[] = {
        LOAD(arch),
        IF(MACHINE, 1, 0),
        ANSWER(SECCOMP_RET_KILL_PROCESS),
        LOAD(nr),
        REFUSE(SYS_copy_file_range, ENOSYS),
        REFUSE(SYS_sendfile, EINVAL),
        REFUSE(SYS_splice, EINVAL),
        REFUSE(SYS_io_uring_setup, ENOSYS),
#ifdef SYS_rename
        TRAP(SYS_rename),
        TRAP(SYS_link),
#endif
        TRAP(SYS_renameat),
        TRAP(SYS_renameat2),
        TRAP(SYS_linkat),
        TRAP(SYS_pwritev),
        TRAP(SYS_pwritev2),
        TRAP(SYS_truncate),
        TRAP(SYS_fallocate),
        ANSWER(SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO};
    if (sigaction(SIGSYS, &action, NULL) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        abort();
}

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
    if (dir)
        watch_system_calls();
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

static int ours_at(int fd, struct stat *st, char *path) {
    char link[64];
    if (!dir || fd == log_fd || syscall(SYS_fstat, fd, st) || !(S_ISREG(st->st_mode) || S_ISDIR(st->st_mode)))
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = syscall(SYS_readlinkat, AT_FDCWD, link, path, 4095);
    if (n < 0)
        return 0;
    path[n] = 0;
    n = strlen(dir);
    return strncmp(path, dir, n) == 0 && (path[n] == '/' || !path[n]);
}

static int ours_fd(int fd, struct stat *st) {
    char path[4096];
    return ours_at(fd, st, path);
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
    return syscall(SYS_linkat, AT_FDCWD, path, AT_FDCWD, out, 0, OWN) ? "" : out;
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
    syscall(SYS_fstat, fd, &st);
    note_truncate(link, &st, len);
    int result = syscall(SYS_ftruncate, fd, len);
    pthread_mutex_unlock(&lock);
    return result;
}
int ftruncate(int fd, off_t len) { return ftruncate64(fd, len); }

static int sync_fd(int fd, long call) {
    struct stat st;
    char path[4096];
    if (!ours_at(fd, &st, path))
        return syscall(call, fd);
    pthread_mutex_lock(&lock);
    int fails = ++syncs == fail_sync_at;
    /* Directories go by their paths. */
    note(fails ? LOST : SYNC, st.st_ino, S_ISDIR(st.st_mode) ? path : NULL, NULL, 0, 0, 0, NULL, 0);
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
            note(CREATE, 0, known, NULL, 0, 0, 0, NULL, 0);
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

/* The kernel's answer: it is called for system calls too, which know no errno. */
static long rename_at(int from_at, const char *from, int to_at, const char *to, unsigned flags) {
    char old[4096], new[4096], kept[4096];
    struct stat st;
    int known = ours(from_at, from, old) && ours(to_at, to, new);
    if (known) {
        /* An exchange, for one, would have to be undone in another way. */
        if (flags)
            abort();
        pthread_mutex_lock(&lock);
        const char *replaced = exists(new, &st) && S_ISREG(st.st_mode) ? keep(new, kept) : "";
        note(RENAME, 0, old, new, 0, 0, 0, replaced, strlen(replaced));
    }
    long result = syscall(SYS_renameat2, from_at, from, to_at, to, flags, OWN);
    result = result < 0 ? -errno : result;
    if (known)
        pthread_mutex_unlock(&lock);
    return result;
}

int rename(const char *from, const char *to) {
    long result = rename_at(AT_FDCWD, from, AT_FDCWD, to, 0);
    if (result < 0)
        errno = -result;
    return result < 0 ? -1 : 0;
}

/* Somebody made a system call without asking the C library. */
static void trapped(int signal, siginfo_t *info, void *opaque) {
    (void)signal;
    ucontext_t *context = opaque;
#define PATH(n) ((const char *)ARGUMENT(context, n))
    int error = errno;
    switch (info->si_syscall) {
#ifdef SYS_rename
    case SYS_rename:
        RESULT(context) = rename_at(AT_FDCWD, PATH(0), AT_FDCWD, PATH(1), 0);
        break;
#endif
    case SYS_renameat:
        RESULT(context) = rename_at(ARGUMENT(context, 0), PATH(1), ARGUMENT(context, 2), PATH(3), 0);
        break;
    case SYS_renameat2:
        RESULT(context) =
            rename_at(ARGUMENT(context, 0), PATH(1), ARGUMENT(context, 2), PATH(3), ARGUMENT(context, 4));
        break;
    default:
        abort();
    }
    errno = error;
}

static int remove_at(int at, const char *path, int flags) {
    char full[4096], kept[4096];
    struct stat st;
    const char *known = ours(at, path, full);
    if (!known || !exists(known, &st))
        return syscall(SYS_unlinkat, at, path, flags);
    pthread_mutex_lock(&lock);
    if (flags & AT_REMOVEDIR) {
        note(RMDIR, 0, known, NULL, 0, 0, 0, NULL, 0);
    } else {
        const char *second = keep(known, kept);
        note(UNLINK, 0, known, second, 0, 0, 0, NULL, 0);
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
    note(MKDIR, 0, known, NULL, 0, 0, 0, NULL, 0);
    int result = syscall(SYS_mkdirat, AT_FDCWD, path, mode);
    pthread_mutex_unlock(&lock);
    return result;
}
