/* Makes calls of the C library fail, to be preloaded into the service: from the N-th call of a kind on as many as the
 * file that OVERSELL_TORTURE names says, which may change at any time (tests/support/torture.py writes it). Where in the
 * program a call failed goes to a second file, OVERSELL_TORTURE_STACK.
 *
 * What fails, fails as it would: a connection that is reset is shut, so that the server sees its end; short counts and
 * interrupted calls are only those of connections that the program has made itself, since libmicrohttpd relies on what
 * epoll promises for those: a short count means that there is no more. Two libraries' own calls for memory do not fail:
 * libzookeeper does not look whether it has got it (3.8: the process dies, as by kill -9), and libcrypto makes 20,000 of
 * them to say a password to PostgreSQL, beside which nobody else's would ever be met. */
#undef _FORTIFY_SOURCE /* its inline functions would stand where ours are to be */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { NONE, MEMORY, SEND, RECEIVE, POLL, CONNECT, THREAD };
enum way {
    REFUSED,     /* nothing is done: no memory, no thread, no connection; or one that is reset */
    TOO_LATE,    /* what was to be sent is sent, and then the connection is reset */
    INTERRUPTED, /* EINTR */
    SHORT        /* one byte */
};

/* The file. */
struct order {
    _Atomic int32_t kind, way;   /* of the calls that are counted, and how they fail */
    _Atomic int64_t first, last; /* these fail, counted from 1 */
    _Atomic int64_t calls, failed;
    _Atomic int32_t cut; /* shut all connections that were made, once */
};

enum { DESCRIPTORS = 1 << 16, FRAMES = 40, STACKS = 3 };

static struct order *order; /* NULL: nothing fails */
static int stack_file = -1;
static struct {
    const char *name;
    uintptr_t begin, end; /* of its code */
} spared[] = {{.name = "/libzookeeper"}, {.name = "/libcrypto"}};
static atomic_bool connected[DESCRIPTORS]; /* by connect */
static _Thread_local
    __attribute__((tls_model("initial-exec"))) bool is_inside; /* what we call is not counted */

/* ---- what is behind us ------------------------------------------------------------------------------------------- */

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    char *(*strdup)(const char *);
    char *(*strndup)(const char *, size_t);
    ssize_t (*send)(int, const void *, size_t, int);
    ssize_t (*sendmsg)(int, const struct msghdr *, int);
    ssize_t (*write)(int, const void *, size_t);
    ssize_t (*recv)(int, void *, size_t, int);
    ssize_t (*read)(int, void *, size_t);
    int (*poll)(struct pollfd *, nfds_t, int);
    int (*connect)(int, const struct sockaddr *, socklen_t);
    int (*accept4)(int, struct sockaddr *, socklen_t *, int);
    int (*socket)(int, int, int);
    int (*pthread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
} next;

#define FIND(name) next.name = dlsym(RTLD_NEXT, #name)

static void find_next(void)
{
    FIND(malloc), FIND(calloc), FIND(realloc), FIND(strdup), FIND(strndup);
    FIND(send), FIND(sendmsg), FIND(write), FIND(recv), FIND(read), FIND(poll);
    FIND(connect), FIND(accept4), FIND(socket), FIND(pthread_create);
}

/* Others are called before our constructor is. */
#define NEXT(name) (next.name ? next.name : (find_next(), next.name))

enum { SPARED = sizeof spared / sizeof spared[0] };

static int find_spared(struct dl_phdr_info *object, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    for (int s = 0; s < SPARED; s++)
        for (int i = 0; i < object->dlpi_phnum && strstr(object->dlpi_name, spared[s].name); i++)
            if (object->dlpi_phdr[i].p_type == PT_LOAD && object->dlpi_phdr[i].p_flags & PF_X) {
                spared[s].begin = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
                spared[s].end = spared[s].begin + object->dlpi_phdr[i].p_memsz;
            }
    return 0;
}

__attribute__((constructor)) static void open_files(void)
{
    void *frames[1];
    const char *path = getenv("OVERSELL_TORTURE"), *stack_path = getenv("OVERSELL_TORTURE_STACK");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    (void)dl_iterate_phdr(find_spared, NULL);
    (void)backtrace(frames, 1); /* which loads what it needs when it is first called */
    if (stack_path)
        stack_file = open(stack_path, O_WRONLY | O_APPEND | O_CLOEXEC);
    void *map = mmap(NULL, sizeof *order, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    (void)close(file);
    if (map != MAP_FAILED)
        order = map;
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

static void note_stack(void)
{
    void *frames[FRAMES];
    is_inside = true;
    int count = backtrace(frames, FRAMES);
    backtrace_symbols_fd(frames, count, stack_file);
    (void)!NEXT(write)(stack_file, "\n", 1);
    is_inside = false;
}

static bool counts(enum kind kind)
{
    return order && order->kind == (int)kind && !is_inside;
}

static bool fails(enum kind kind)
{
    if (!counts(kind))
        return false;
    int64_t number = atomic_fetch_add(&order->calls, 1) + 1;
    if (number < order->first || number > order->last)
        return false;
    int error = errno;
    if (atomic_fetch_add(&order->failed, 1) < STACKS && stack_file >= 0)
        note_stack();
    errno = error;
    return true;
}

/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): the C library's are reserved */

/* ---- memory, threads --------------------------------------------------------------------------------------------- */

/* To be asked by the function that CALLER has called. */
static bool has_no_memory(const void *caller)
{
    uintptr_t at = (uintptr_t)caller;
    for (int s = 0; s < SPARED; s++)
        if (at >= spared[s].begin && at < spared[s].end)
            return false;
    return fails(MEMORY);
}
#define HAS_NO_MEMORY has_no_memory(__builtin_return_address(0))

static void *out_of_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

void *malloc(size_t size)
{
    return HAS_NO_MEMORY ? out_of_memory() : NEXT(malloc)(size);
}

void *calloc(size_t count, size_t size)
{
    return HAS_NO_MEMORY ? out_of_memory() : NEXT(calloc)(count, size);
}

void *realloc(void *block, size_t size)
{
    return HAS_NO_MEMORY ? out_of_memory() : NEXT(realloc)(block, size);
}

/* The C library's calls malloc, a sanitizer's does not. */
char *strdup(const char *text)
{
    if (HAS_NO_MEMORY)
        return out_of_memory();
    bool was_inside = is_inside;
    is_inside = true;
    char *copy = NEXT(strdup)(text);
    is_inside = was_inside;
    return copy;
}

char *strndup(const char *text, size_t size)
{
    if (HAS_NO_MEMORY)
        return out_of_memory();
    bool was_inside = is_inside;
    is_inside = true;
    char *copy = NEXT(strndup)(text, size);
    is_inside = was_inside;
    return copy;
}

int pthread_create(pthread_t *restrict ret_thread, const pthread_attr_t *restrict attributes,
                   void *(*thread_main)(void *), void *restrict argument)
{
    return fails(THREAD) ? EAGAIN : NEXT(pthread_create)(ret_thread, attributes, thread_main, argument);
}

/* ---- connections ------------------------------------------------------------------------------------------------- */

static bool was_connected(int fd)
{
    return fd >= 0 && fd < DESCRIPTORS && connected[fd];
}

static void cut_if_asked(void)
{
    if (!order || !order->cut || !atomic_exchange(&order->cut, 0))
        return;
    for (int fd = 0; fd < DESCRIPTORS; fd++)
        if (connected[fd])
            (void)shutdown(fd, SHUT_RDWR);
}

/* Does this call fail? read and write are of sockets only. */
static bool fails_on(enum kind kind, int fd)
{
    int type;
    socklen_t size = sizeof type;
    cut_if_asked();
    if (!counts(kind) || getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0)
        return false;
    bool is_part = order->way == INTERRUPTED || order->way == SHORT;
    return (was_connected(fd) || !is_part) && fails(kind);
}

static ssize_t break_connection(int fd, int error)
{
    (void)shutdown(fd, SHUT_RDWR);
    errno = error;
    return -1;
}

static ssize_t interrupted(void)
{
    errno = EINTR;
    return -1;
}

ssize_t send(int fd, const void *data, size_t size, int flags)
{
    if (!fails_on(SEND, fd))
        return NEXT(send)(fd, data, size, flags);
    if (order->way == INTERRUPTED)
        return interrupted();
    if (order->way == SHORT)
        return NEXT(send)(fd, data, size > 0, flags);
    if (order->way == TOO_LATE)
        (void)NEXT(send)(fd, data, size, flags);
    return break_connection(fd, EPIPE);
}

ssize_t write(int fd, const void *data, size_t size)
{
    if (!fails_on(SEND, fd))
        return NEXT(write)(fd, data, size);
    if (order->way == INTERRUPTED)
        return interrupted();
    if (order->way == SHORT)
        return NEXT(write)(fd, data, size > 0);
    if (order->way == TOO_LATE)
        (void)!NEXT(write)(fd, data, size);
    return break_connection(fd, EPIPE);
}

/* libmicrohttpd's, for a head and a body at once. */
ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    if (!fails_on(SEND, fd))
        return NEXT(sendmsg)(fd, message, flags);
    if (order->way == TOO_LATE)
        (void)NEXT(sendmsg)(fd, message, flags);
    return break_connection(fd, EPIPE);
}

ssize_t recv(int fd, void *data, size_t size, int flags)
{
    if (!fails_on(RECEIVE, fd))
        return NEXT(recv)(fd, data, size, flags);
    if (order->way == INTERRUPTED)
        return interrupted();
    if (order->way == SHORT)
        return NEXT(recv)(fd, data, size > 0, flags);
    return break_connection(fd, ECONNRESET);
}

ssize_t read(int fd, void *data, size_t size)
{
    if (!fails_on(RECEIVE, fd))
        return NEXT(read)(fd, data, size);
    if (order->way == INTERRUPTED)
        return interrupted();
    if (order->way == SHORT)
        return NEXT(read)(fd, data, size > 0);
    return break_connection(fd, ECONNRESET);
}

int poll(struct pollfd *polled, nfds_t count, int ms)
{
    return fails(POLL) ? (int)interrupted() : NEXT(poll)(polled, count, ms);
}

/* What a program calls that was compiled with _FORTIFY_SOURCE. */
int poll_checked(struct pollfd *polled, nfds_t count, int ms, size_t room) __asm__("__poll_chk");
int poll_checked(struct pollfd *polled, nfds_t count, int ms, size_t room)
{
    return count * sizeof *polled > room ? (abort(), -1) : poll(polled, count, ms);
}

ssize_t read_checked(int fd, void *data, size_t size, size_t room) __asm__("__read_chk");
ssize_t read_checked(int fd, void *data, size_t size, size_t room)
{
    return size > room ? (abort(), -1) : read(fd, data, size);
}

ssize_t recv_checked(int fd, void *data, size_t size, size_t room, int flags) __asm__("__recv_chk");
ssize_t recv_checked(int fd, void *data, size_t size, size_t room, int flags)
{
    return size > room ? (abort(), -1) : recv(fd, data, size, flags);
}

int socket(int family, int type, int protocol)
{
    if (fails(CONNECT)) {
        errno = EMFILE;
        return -1;
    }
    int fd = NEXT(socket)(family, type, protocol);
    if (fd >= 0 && fd < DESCRIPTORS)
        connected[fd] = false;
    return fd;
}

int connect(int fd, const struct sockaddr *address, socklen_t size)
{
    if (fails(CONNECT)) {
        errno = ECONNREFUSED;
        return -1;
    }
    if (fd >= 0 && fd < DESCRIPTORS)
        connected[fd] = true;
    return NEXT(connect)(fd, address, size);
}

int accept4(int fd, struct sockaddr *restrict address, socklen_t *restrict size, int flags)
{
    int made = NEXT(accept4)(fd, address, size, flags);
    if (made >= 0 && made < DESCRIPTORS)
        connected[made] = false;
    return made;
}
/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */
