/* What operating systems call by different names: exported functions, aligned memory, threads and
   semaphores. */

#ifdef _WIN32
#define EXPORTED __declspec(dllexport)
#else
#define EXPORTED __attribute__((visibility("default"))) /* everything else is hidden */
#endif

/* --- memory that begins at a multiple of 64 bytes, and may be read some bytes further --- */

#ifdef _WIN32
#include <malloc.h>
static inline void *allocate_aligned(size_t bytes) { return _aligned_malloc(bytes + 63, 64); }
static inline void free_aligned(void *memory) { _aligned_free(memory); }
#else
static inline void *allocate_aligned(size_t bytes) { /* aligned_alloc is missing before macOS 10.15 */
    void *memory;
    return posix_memalign(&memory, 64, bytes + 63) == 0 ? memory : NULL;
}
static inline void free_aligned(void *memory) { free(memory); }
#endif

/* --- threads and semaphores --- */

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

typedef HANDLE Thread;
typedef HANDLE Semaphore;
#define THREAD_RESULT DWORD WINAPI

static inline int start_thread(Thread *thread, DWORD(WINAPI *run)(void *), void *given) {
    *thread = CreateThread(NULL, 0, run, given, 0, NULL);
    return *thread != NULL;
}
static inline void join_thread(Thread thread) {
    WaitForSingleObject(thread, INFINITE);
    CloseHandle(thread);
}
static inline int make_semaphore(Semaphore *semaphore) {
    *semaphore = CreateSemaphoreW(NULL, 0, LONG_MAX, NULL);
    return *semaphore != NULL;
}
static inline void post_semaphore(Semaphore *semaphore) { ReleaseSemaphore(*semaphore, 1, NULL); }
static inline void wait_for_semaphore(Semaphore *semaphore) { WaitForSingleObject(*semaphore, INFINITE); }
static inline void free_semaphore(Semaphore *semaphore) { CloseHandle(*semaphore); }

#elif !defined(__wasm__) /* a module has one thread */
#include <pthread.h>

typedef pthread_t Thread;
#define THREAD_RESULT void *

static inline int start_thread(Thread *thread, void *(*run)(void *), void *given) {
    return pthread_create(thread, NULL, run, given) == 0;
}
static inline void join_thread(Thread thread) { pthread_join(thread, NULL); }

#ifdef __APPLE__ /* has sem_init, which always fails */
#include <dispatch/dispatch.h>

typedef dispatch_semaphore_t Semaphore;
static inline int make_semaphore(Semaphore *semaphore) {
    *semaphore = dispatch_semaphore_create(0);
    return *semaphore != NULL;
}
static inline void post_semaphore(Semaphore *semaphore) { dispatch_semaphore_signal(*semaphore); }
static inline void wait_for_semaphore(Semaphore *semaphore) {
    dispatch_semaphore_wait(*semaphore, DISPATCH_TIME_FOREVER);
}
static inline void free_semaphore(Semaphore *semaphore) { dispatch_release(*semaphore); }

#else
#include <semaphore.h>

typedef sem_t Semaphore;
static inline int make_semaphore(Semaphore *semaphore) { return sem_init(semaphore, 0, 0) == 0; }
static inline void post_semaphore(Semaphore *semaphore) { sem_post(semaphore); }
static inline void wait_for_semaphore(Semaphore *semaphore) {
    while (sem_wait(semaphore)) {} /* a signal may interrupt it */
}
static inline void free_semaphore(Semaphore *semaphore) { sem_destroy(semaphore); }
#endif
#endif
