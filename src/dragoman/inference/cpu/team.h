/* Threads that help with one product, where there are too few sentences to give each core its own.

   Work is taken piece by piece. A helper that has no core at the moment takes nothing, and the
   caller does it all; it waits only for pieces that have been begun. Where that wait is long, as
   on a machine with other work to do, the caller goes on alone for a while, each time longer.
   Helpers look for work a little while, and then sleep. */

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#define LOOKS 4000   /* some tens of microseconds, longer than a decoder is without a product */
#define WAITS 3000   /* as long: who is waited for longer has lost its core */
#define LEAST 64     /* jobs done alone after such a wait */
#define MOST 16384

typedef void (*Work)(void *job, int piece);

typedef struct Team Team;
typedef struct {
    Team *team;
    pthread_t thread;
    sem_t wake;
    atomic_int asleep;
} Helper;

struct Team {
    atomic_uint ticket; /* of the last job */
    atomic_int open, next, busy, stop;
    int pieces, count;
    int alone, patience; /* jobs until help is asked for again, and the last such number */
    int calm;            /* jobs since then without a long wait */
    Work work;
    void *job;
    Helper helper[];
};

static inline void breathe(void) {
#ifdef X86
    _mm_pause();
#endif
}

static void take(Team *team) {
    for (int piece; (piece = atomic_fetch_add(&team->next, 1)) < team->pieces;)
        team->work(team->job, piece);
}

static void *help(void *given) {
    Helper *self = given;
    Team *team = self->team;
    unsigned seen = 0;
    for (;;) {
        for (int looks = 0; atomic_load(&team->ticket) == seen; breathe()) {
            if (++looks < LOOKS) continue;
            atomic_store(&self->asleep, 1);
            if (atomic_load(&team->ticket) == seen && !atomic_load(&team->stop))
                while (sem_wait(&self->wake)) {}
            atomic_store(&self->asleep, 0);
            looks = 0;
            if (atomic_load(&team->stop)) return NULL;
        }
        seen = atomic_load(&team->ticket);
        atomic_fetch_add(&team->busy, 1);
        if (atomic_load(&team->open)) take(team); /* if not, the job may be gone */
        atomic_fetch_sub(&team->busy, 1);
        if (atomic_load(&team->stop)) return NULL;
    }
}

static Team *gather(int helpers) {
    Team *team = calloc(1, sizeof(Team) + helpers * sizeof(Helper));
    if (!team) return NULL;
    for (int i = 0; i < helpers; i++) {
        Helper *one = &team->helper[i];
        one->team = team;
        sem_init(&one->wake, 0, 0);
        if (pthread_create(&one->thread, NULL, help, one)) break;
        team->count++;
    }
    return team;
}

static void together(Team *team, Work work, void *job, int pieces) {
    team->work = work;
    team->job = job;
    team->pieces = pieces;
    atomic_store(&team->next, 0);
    atomic_store(&team->open, 1);
    atomic_fetch_add(&team->ticket, 1);
    for (int i = 0; i < team->count; i++)
        if (atomic_load(&team->helper[i].asleep)) sem_post(&team->helper[i].wake);
    take(team);
    atomic_store(&team->open, 0);
    int waits = 0;
    for (; atomic_load(&team->busy); breathe()) waits++;
    if (waits > WAITS) {
        team->patience = team->patience ? 2 * team->patience : LEAST;
        if (team->patience > MOST) team->patience = MOST;
        team->alone = team->patience;
        team->calm = 0;
    } else if (team->patience > 0 && ++team->calm >= 4 * LEAST) {
        team->patience /= 2;
        team->calm = 0;
    }
}

static void dismiss(Team *team) {
    atomic_store(&team->stop, 1);
    atomic_fetch_add(&team->ticket, 1);
    for (int i = 0; i < team->count; i++) sem_post(&team->helper[i].wake);
    for (int i = 0; i < team->count; i++) {
        pthread_join(team->helper[i].thread, NULL);
        sem_destroy(&team->helper[i].wake);
    }
    free(team);
}
