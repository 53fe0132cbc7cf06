/* A thread pool for one product, where there are too few sentences to give each core its own.

   Parts of the work are taken one by one. A helper that has no core at the moment takes nothing,
   and the caller does it all; it waits only for parts that have been begun. Where that wait is
   long, as on a machine with other work to do, the caller goes on alone for a while, each time
   longer. Helpers spin a little while for work, and then sleep. */

#ifdef __wasm__ /* a module has one thread */
typedef void (*Work)(void *job, int part);
typedef struct { int alone, count; } ThreadPool;
static ThreadPool *start_pool(int helpers) { (void)helpers; return NULL; }
static void run_parallel(ThreadPool *pool, Work work, void *job, int parts) {
    (void)pool;
    for (int part = 0; part < parts; part++) work(job, part);
}
static void stop_pool(ThreadPool *pool) { (void)pool; }
#else

#include <stdatomic.h>

#define MAX_SPINS 4000      /* some tens of microseconds, longer than a decoder is without a product */
#define LONG_WAIT 3000      /* as long: a helper waited for longer has lost its core */
#define MIN_ALONE 64        /* jobs done alone after such a wait */
#define MAX_ALONE 16384

typedef void (*Work)(void *job, int part);

typedef struct ThreadPool ThreadPool;
typedef struct {
    ThreadPool *pool;
    Thread thread;
    Semaphore wake;
    atomic_int asleep;
} Helper;

struct ThreadPool {
    atomic_uint job_number; /* of the last job */
    atomic_int open, next, busy, stop;
    int parts, count;
    int alone;           /* jobs to do alone until help is asked for again */
    int last_alone;      /* how many there were the last time */
    int without_wait;    /* jobs since then without a long wait */
    Work work;
    void *job;
    Helper helper[];
};

static inline void pause_briefly(void) {
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void take_parts(ThreadPool *pool) {
    for (int part; (part = atomic_fetch_add(&pool->next, 1)) < pool->parts;)
        pool->work(pool->job, part);
}

static THREAD_RESULT run_helper(void *given) {
    Helper *self = given;
    ThreadPool *pool = self->pool;
    unsigned seen = 0;
    for (;;) {
        for (int spins = 0; atomic_load(&pool->job_number) == seen; pause_briefly()) {
            if (++spins < MAX_SPINS) continue;
            atomic_store(&self->asleep, 1);
            if (atomic_load(&pool->job_number) == seen && !atomic_load(&pool->stop))
                wait_for_semaphore(&self->wake);
            atomic_store(&self->asleep, 0);
            spins = 0;
            if (atomic_load(&pool->stop)) return 0;
        }
        seen = atomic_load(&pool->job_number);
        atomic_fetch_add(&pool->busy, 1);
        if (atomic_load(&pool->open)) take_parts(pool); /* if not, the job may be gone */
        atomic_fetch_sub(&pool->busy, 1);
        if (atomic_load(&pool->stop)) return 0;
    }
}

static ThreadPool *start_pool(int helpers) {
    ThreadPool *pool = calloc(1, sizeof(ThreadPool) + helpers * sizeof(Helper));
    if (!pool) return NULL;
    for (int i = 0; i < helpers; i++) {
        Helper *one = &pool->helper[i];
        one->pool = pool;
        if (!make_semaphore(&one->wake)) break;
        if (!start_thread(&one->thread, run_helper, one)) {
            free_semaphore(&one->wake);
            break;
        }
        pool->count++;
    }
    return pool;
}

static void run_parallel(ThreadPool *pool, Work work, void *job, int parts) {
    pool->work = work;
    pool->job = job;
    pool->parts = parts;
    atomic_store(&pool->next, 0);
    atomic_store(&pool->open, 1);
    atomic_fetch_add(&pool->job_number, 1);
    for (int i = 0; i < pool->count; i++)
        if (atomic_load(&pool->helper[i].asleep)) post_semaphore(&pool->helper[i].wake);
    take_parts(pool);
    atomic_store(&pool->open, 0);
    int waits = 0;
    for (; atomic_load(&pool->busy); pause_briefly()) waits++;
    if (waits > LONG_WAIT) {
        pool->last_alone = pool->last_alone ? 2 * pool->last_alone : MIN_ALONE;
        if (pool->last_alone > MAX_ALONE) pool->last_alone = MAX_ALONE;
        pool->alone = pool->last_alone;
        pool->without_wait = 0;
    } else if (pool->last_alone > 0 && ++pool->without_wait >= 4 * MIN_ALONE) {
        pool->last_alone /= 2;
        pool->without_wait = 0;
    }
}

static void stop_pool(ThreadPool *pool) {
    atomic_store(&pool->stop, 1);
    atomic_fetch_add(&pool->job_number, 1);
    for (int i = 0; i < pool->count; i++) post_semaphore(&pool->helper[i].wake);
    for (int i = 0; i < pool->count; i++) {
        join_thread(pool->helper[i].thread);
        free_semaphore(&pool->helper[i].wake);
    }
    free(pool);
}
#endif
