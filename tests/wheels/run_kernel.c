/* Loads a compiled kernel as Python does, and translates with a small random model in threads.

   run_kernel LIBRARY prints a line for each instruction set that the machine has: its name, and then
   the best pieces of some steps with their log-probabilities. The model is the same everywhere, and
   so are the lines, but for the last digits. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "platform.h"
typedef struct ThreadPool ThreadPool;
#include "layout.h"

#ifdef _WIN32
static void *open_library(const char *path) { return (void *)LoadLibraryA(path); }
static void *find(void *library, const char *name) { return (void *)GetProcAddress(library, name); }
static void rest(void) { Sleep(20); }
#else
#include <dlfcn.h>
#include <unistd.h>
static void *open_library(const char *path) { return dlopen(path, RTLD_NOW | RTLD_LOCAL); }
static void *find(void *library, const char *name) { return dlsym(library, name); }
static void rest(void) { usleep(20000); }
#endif

#define WIDTH 128
#define HEADS 2
#define PIECES 128
#define SENTENCES 2
#define STEPS 4
#define CANDIDATES 3
static const int lengths[SENTENCES] = {5, 3};
static const int source[] = {7, 12, 33, 90, 3, 64, 101, 3};

static uint32_t state = 1;
static int random_number(int below) {
    state = state * 1664525u + 1013904223u;
    return (int)((state >> 8) % (uint32_t)below);
}

static float *random_floats(int count, float middle, float size) {
    float *x = allocate_aligned(sizeof(float) * count);
    for (int i = 0; i < count; i++) x[i] = middle + size * (float)(random_number(2001) - 1000) / 1000;
    return x;
}

static Linear random_matrix(int outputs, int inputs) {
    int8_t *w = allocate_aligned((size_t)outputs * inputs);
    int32_t *offset = allocate_aligned(sizeof(int32_t) * outputs);
    for (int i = 0; i < outputs * inputs; i++) w[i] = (int8_t)(random_number(255) - 127);
    for (int n = 0; n < outputs; n++) {
        offset[n] = 0;
        for (int k = 0; k < inputs; k++)
            offset[n] += 128 * w[(size_t)(n / 64) * 64 * inputs + k / 4 * 256 + 4 * (n % 64) + k % 4];
    }
    return (Linear){outputs, inputs, w, random_floats(outputs, 0.002f, 0.001f), offset, random_floats(outputs, 0, 0.1f)};
}

static Norm random_norm(void) { return (Norm){random_floats(WIDTH, 1, 0.2f), random_floats(WIDTH, 0, 0.2f)}; }

int main(int count, char **arguments) {
    void *library = count > 1 ? open_library(arguments[1]) : NULL;
    if (!library) return printf("the library cannot be loaded\n"), 1;
#define FUNCTION(result, name, ...) result (*name)(__VA_ARGS__) = (result(*)(__VA_ARGS__))find(library, "dragoman_" #name)
    FUNCTION(int, interface_version, void);
    FUNCTION(const char *, instruction_set, int);
    FUNCTION(int, has_instruction_set, int);
    FUNCTION(void, use_instruction_set, int);
    FUNCTION(Scratch *, new_scratch, int);
    FUNCTION(void, free_scratch, Scratch *);
    FUNCTION(void, encode, const Model *, Scratch *, int, const int *, const int *, uint16_t **);
    FUNCTION(void, step, const Model *, Scratch *, const StepInput *, StepOutput *);
    printf("interface %d\n", interface_version());

    EncoderLayer encoder = {random_matrix(3 * WIDTH, WIDTH), random_matrix(WIDTH, WIDTH), random_matrix(2 * WIDTH, WIDTH),
                            random_matrix(WIDTH, 2 * WIDTH), random_norm(), random_norm()};
    DecoderLayer decoder = {random_matrix(3 * WIDTH, WIDTH), random_matrix(WIDTH, WIDTH), random_matrix(WIDTH, WIDTH),
                            random_matrix(2 * WIDTH, WIDTH), random_matrix(WIDTH, WIDTH), random_matrix(2 * WIDTH, WIDTH),
                            random_matrix(WIDTH, 2 * WIDTH), random_norm(), random_norm(), random_norm()};
    Linear pieces = random_matrix(PIECES, WIDTH);
    Model model = {.d_model = WIDTH, .heads = HEADS, .d_k = WIDTH / HEADS, .d_ff = 2 * WIDTH, .encoder_layers = 1,
                   .decoder_layers = 1, .vocabulary = PIECES, .pre = 1, .activation = 1, .eos = 3, .first = 4,
                   .epsilon = 1e-5f, .scale = 11.3f, .encoder = &encoder, .decoder = &decoder, .source_pieces = pieces,
                   .target_pieces = pieces, .projection = pieces, .encoder_norm = random_norm(),
                   .decoder_norm = random_norm(), .positions = random_floats(16 * WIDTH, 0, 1), .longest = 16};

    uint16_t *source_caches[SENTENCES], *cache = allocate_aligned(sizeof(uint16_t) * SENTENCES * STEPS * 2 * WIDTH);
    for (int i = 0; i < SENTENCES; i++) source_caches[i] = allocate_aligned(sizeof(uint16_t) * lengths[i] * 2 * WIDTH);
    int tables[SENTENCES * STEPS], hypotheses[SENTENCES] = {0, 1};
    for (int i = 0; i < SENTENCES * STEPS; i++) tables[i] = i;

    const char *name;
    for (int number = 0; (name = instruction_set(number)); number++) {
        if (!has_instruction_set(number)) continue;
        use_instruction_set(number);
        Scratch *scratch = new_scratch(2);
        encode(&model, scratch, SENTENCES, lengths, source, source_caches);
        printf("%s", name);
        int ids[SENTENCES] = {1, 1}, found_ids[SENTENCES * CANDIDATES];
        float log_probs[SENTENCES * CANDIDATES];
        for (int t = 0; t < STEPS; t++) {
            rest(); /* until the helpers sleep */
            int positions[SENTENCES] = {t, t};
            StepInput in = {.count = SENTENCES, .predicted = SENTENCES, .candidates = CANDIDATES, .beams = 1,
                            .table_width = STEPS, .ids = ids, .positions = positions, .hypotheses = hypotheses,
                            .cache_tables = tables, .source_lengths = lengths, .source_caches = source_caches,
                            .cache = cache, .cache_positions = SENTENCES * STEPS, .projection = &model.projection};
            StepOutput found = {.ids = found_ids, .log_probs = log_probs};
            step(&model, scratch, &in, &found);
            for (int i = 0; i < SENTENCES * CANDIDATES; i++) printf(" %d:%.4f", found_ids[i], log_probs[i]);
            for (int i = 0; i < SENTENCES; i++) ids[i] = found_ids[CANDIDATES * i];
        }
        printf("\n");
        free_scratch(scratch);
    }
    return 0;
}
