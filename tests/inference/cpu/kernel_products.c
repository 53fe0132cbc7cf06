/* Compares the int8 products of every instruction set that the machine has with plain sums.

   Inputs and weights are random or as large as they can be, in some rows no input is negative and
   most are zero; numbers of rows, inputs and outputs are odd ones too. Others are as bad as they can be for sums in
   16 bits. Prints a line for each instruction set, and
   returns 1 if any sum is wrong, or an input is rounded otherwise than elsewhere. With --speed it prints how fast each of them is instead. */

#include "kernel.c"

#include <stdio.h>
#include <time.h>

#define MOST_ROWS 51
typedef void (*Product)(Scratch *, const Linear *, const float *, int, int, float *);

static uint32_t state = 1;
static int random_number(int below) {
    state = state * 1664525u + 1013904223u;
    return (int)((state >> 8) % (uint32_t)below);
}

/* a matrix whose products are whole numbers: scales are 1, and there are no biases */
static Linear make_matrix(int outputs, int inputs, int extreme) {
    int8_t *w = allocate_aligned((size_t)outputs * inputs);
    float *scale = allocate_aligned(sizeof(float) * outputs), *bias = allocate_aligned(sizeof(float) * outputs);
    int32_t *offset = allocate_aligned(sizeof(int32_t) * outputs);
    for (int i = 0; i < outputs * inputs; i++)
        w[i] = (int8_t)(extreme ? (random_number(2) ? 127 : -128) : random_number(256) - 128);
    for (int n = 0; n < outputs; n++) {
        scale[n] = 1, bias[n] = 0, offset[n] = 0;
        for (int k = 0; k < inputs; k++)
            offset[n] += 128 * w[(size_t)(n / 64) * 64 * inputs + k / 4 * 256 + 4 * (n % 64) + k % 4];
    }
    return (Linear){outputs, inputs, w, scale, offset, bias};
}

static void free_matrix(Linear *l) {
    free_aligned((void *)l->weight), free_aligned((void *)l->scale), free_aligned((void *)l->offset), free_aligned((void *)l->bias);
}

static int compare(const char *name, Product linear) {
    static const int many[] = {0, 1, 2, 3, 4, 5, 6, 7, 13, 16, 17, 33, MOST_ROWS};
    long wrong = 0, compared = 0;
    state = 1;
    for (int round = 0; round < 40; round++) {
        const int K = round % 3 == 2 ? 64 * (1 + random_number(9)) : 4 * (1 + (round < 24 ? round : random_number(140)));
        const int N = 64 * (1 + round % 2), extreme = round % 4 == 3;
        Linear l = make_matrix(N, K, extreme);
        float *x = allocate_aligned(sizeof(float) * MOST_ROWS * K), *y = allocate_aligned(sizeof(float) * MOST_ROWS * N);
        float *expected = allocate_aligned(sizeof(float) * MOST_ROWS * N);
        for (int r = 0; r < MOST_ROWS; r++) {
            const int positive = round % 2 && random_number(4), zeros = positive * random_number(10);
            for (int k = 0; k < K; k++) {
                x[r * K + k] = (float)(extreme ? (random_number(2) ? 127 : -127) : random_number(255) - 127);
                if (positive) x[r * K + k] = random_number(10) < zeros ? 0 : fabsf(x[r * K + k]);
            }
            x[r * K + random_number(K)] = positive || random_number(2) ? 127 : -127; /* so that its scale is 1 */
            for (int n = 0; n < N; n++) {
                const int8_t *w = l.weight + (size_t)(n / 64) * 64 * K + 4 * (n % 64);
                int32_t sum = 0;
                for (int k = 0; k < K; k++) sum += (int32_t)x[r * K + k] * w[k / 4 * 256 + k % 4];
                expected[r * N + n] = (float)sum;
            }
        }
        for (int i = 0; i < (int)(sizeof many / sizeof *many); i++) {
            const int rows = many[i];
            Scratch scratch = {0};
            linear(&scratch, &l, x, K, rows, y);
            for (int j = 0; j < rows * N; j++, compared++) wrong += y[j] != expected[j];
            for (int j = 0; j < BUFFERS; j++) free_aligned(scratch.buffer[j]);
        }
        free_aligned(x), free_aligned(y), free_aligned(expected), free_matrix(&l);
    }
    printf("%s: %ld sums, %ld wrong\n", name, compared, wrong);
    return wrong > 0;
}

/* Inputs and weights whose products are as large as they can be, or just too large to be added in 16
   bits: of one sign, of signs that change with each or after some, and with sizes that sum up to 256 or more. */
static int compare_worst(const char *name, Product linear) {
    enum { ROWS = 12, N = 64 };
    static const int sizes[][4] = {{127, 127, 127, 127}, {64, 64, 64, 64}, {65, 64, 64, 64}, {127, 1, 127, 1}, {127, 2, 127, 1}};
    static const int signs[] = {1, -1}, weights[] = {127, -127, -128}, all_inputs[] = {4, 8, 12, 64, 260, 516, 1024};
    long wrong = 0, compared = 0;
    for (int i = 0; i < 7; i++) {
        const int K = all_inputs[i];
        Linear l = make_matrix(N, K, 0);
        float *x = allocate_aligned(sizeof(float) * ROWS * K), y[ROWS * N];
        for (int w = 0; w < 3; w++)
            for (int run = 1; run <= 8; run *= 2) /* the signs of weights change after so many, in half of the columns */
                for (int size = 0; size < 5; size++) {
                    for (int n = 0; n < N; n++)
                        for (int k = 0; k < K; k++)
                            ((int8_t *)l.weight)[k / 4 * 256 + 4 * n + k % 4] =
                                (int8_t)((n / 2 + k / run) % 2 ? weights[w] : n % 2 ? 127 : weights[w]);
                    for (int n = 0; n < N; n++) {
                        int32_t sum = 0;
                        for (int k = 0; k < K; k++) sum += l.weight[k / 4 * 256 + 4 * n + k % 4];
                        ((int32_t *)l.offset)[n] = 128 * sum;
                    }
                    for (int r = 0; r < ROWS; r++)
                        for (int k = 0; k < K; k++) /* pairs of one half are in two fours */
                            x[r * K + k] = (float)(signs[(r % 2 + (r / 2 ? k >> (r / 2 - 1) : 0)) % 2] * sizes[size][k % 2 + k / 4 % 2 * 2]);
                    for (int r = 0; r < ROWS; r++) x[r * K + K - 1] = r % 2 ? 127 : -127; /* so that its scale is 1 */
                    for (int rows = 1; rows <= ROWS; rows++) {
                        Scratch scratch = {0};
                        linear(&scratch, &l, x, K, rows, y);
                        for (int r = 0; r < rows; r++)
                            for (int n = 0; n < N; n++, compared++) {
                                int32_t sum = 0;
                                for (int k = 0; k < K; k++) sum += (int32_t)x[r * K + k] * l.weight[k / 4 * 256 + 4 * n + k % 4];
                                wrong += y[r * N + n] != (float)sum;
                            }
                        for (int j = 0; j < BUFFERS; j++) free_aligned(scratch.buffer[j]);
                    }
                }
        free_aligned(x), free_matrix(&l);
    }
    if (wrong) printf("%s: of %ld of the largest sums %ld wrong\n", name, compared, wrong);
    return wrong > 0;
}

/* Compares how inputs are rounded, many of them nearly halfway between whole numbers, with `plain`:
   they are multiplied with a matrix that leaves them as they are. */
static int compare_rounding(const char *name, Product linear) {
    enum { ROWS = 7, K = 320 };
    static float x[ROWS * K], y[ROWS * K], expected[ROWS * K];
    long wrong = 0;
    state = 1;
    Linear same = make_matrix(K, K, 0);
    for (int n = 0; n < K; n++)
        for (int k = 0; k < K; k++)
            ((int8_t *)same.weight)[(size_t)(n / 64) * 64 * K + k / 4 * 256 + 4 * (n % 64) + k % 4] = n == k;
    for (int n = 0; n < K; n++) ((int32_t *)same.offset)[n] = 128;
    for (int round = 0; round < 50; round++) {
        for (int r = 0; r < ROWS; r++) {
            const float most = 0.01f * (float)(1 + random_number(1000));
            for (int k = 0; k < K; k++) x[r * K + k] = ((float)(random_number(253) - 126) + 0.5f) * most / 127;
            x[r * K + random_number(K)] = most;
        }
        Scratch one = {0}, other = {0};
        linear_plain(&one, &same, x, K, ROWS, expected);
        linear(&other, &same, x, K, ROWS, y);
        for (int i = 0; i < ROWS * K; i++) wrong += y[i] != expected[i];
        for (int i = 0; i < BUFFERS; i++) free_aligned(one.buffer[i]), free_aligned(other.buffer[i]);
    }
    free_matrix(&same);
    if (wrong) printf("%s: %ld inputs are rounded otherwise\n", name, wrong);
    return wrong > 0;
}

/* --- speed --- */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* the billions of multiplications a second of the fastest of many calls */
static double speed(Product linear, const Linear *l, const float *x, int rows, float *y) {
    Scratch scratch = {0};
    const double work = (double)rows * l->inputs * l->outputs, start = now();
    double best = 1e9;
    for (int calls = 0; calls < 5 || (now() - start < 0.05 && calls < 2000); calls++) {
        double before = now();
        linear(&scratch, l, x, l->inputs, rows, y);
        double seconds = now() - before;
        best = seconds < best ? seconds : best;
    }
    for (int i = 0; i < BUFFERS; i++) free_aligned(scratch.buffer[i]);
    return 1e-9 * work / best;
}

static void print_speeds(void) {
    static const int shapes[][2] = {{512, 512}, {512, 2048}, {2048, 512}, {384, 384}, {384, 1536}, {1536, 384}};
    static const int many[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 96, 256};
    printf("GMAC/s of products with their rounding, of one core; + with inputs as after ReLU: 93%% are zero\n");
    printf("%18s", "inputs outputs rows");
#define PRINT_NAME(x) if (has_##x()) printf(" %12s %7s", #x, "+");
    INSTRUCTION_SETS(PRINT_NAME)
    printf("\n");
    for (int i = 0; i < (int)(sizeof shapes / sizeof *shapes); i++) {
        const int K = shapes[i][0], N = shapes[i][1];
        Linear l = make_matrix(N, K, 0);
        float *x = allocate_aligned(sizeof(float) * 256 * K), *z = allocate_aligned(sizeof(float) * 256 * K);
        float *y = allocate_aligned(sizeof(float) * 256 * N);
        for (int j = 0; j < 256 * K; j++) {
            x[j] = 0; /* as after a normalisation: of 127 the root mean square is about 38 */
            for (int k = 0; k < 4; k++) x[j] += (float)(random_number(65) - 32);
            z[j] = random_number(100) < 93 ? 0 : fabsf(x[j]);
        }
        for (int j = 0; j < (int)(sizeof many / sizeof *many); j++) {
            printf("%6d %7d %4d", K, N, many[j]);
#define PRINT_SPEED(s) if (has_##s()) \
    printf(" %12.1f %7.1f", speed(linear_##s, &l, x, many[j], y), speed(linear_##s, &l, z, many[j], y));
            INSTRUCTION_SETS(PRINT_SPEED)
            printf("\n");
            fflush(stdout);
        }
        free_aligned(x), free_aligned(y), free_aligned(z), free_matrix(&l);
    }
}

int main(int count, char **arguments) {
    int failed = 0;
    if (count > 1 && !strcmp(arguments[1], "--speed")) {
        print_speeds();
        return 0;
    }
#define COMPARE(x) if (has_##x()) failed |= compare(#x, linear_##x) | compare_worst(#x, linear_##x) | compare_rounding(#x, linear_##x);
    INSTRUCTION_SETS(COMPARE)
    return failed;
}
