/* Compares the int8 products of every instruction set that the machine has with plain ones.

   Weights and inputs are random or as large as they can be; numbers of rows and inputs are odd ones
   too. Prints a line for each instruction set, and returns 1 if any of its sums is wrong. */

#include "kernel.c"

#include <stdio.h>

typedef void (*Tiles)(int, const uint8_t *, int, const int8_t *, int32_t *);

static uint32_t state = 1;
static int random_number(int below) {
    state = state * 1664525u + 1013904223u;
    return (int)((state >> 8) % (uint32_t)below);
}

static int compare(const char *name, Tiles tiles, int offset, int most_rows) {
    long wrong = 0, compared = 0;
    for (int round = 0; round < 200; round++) {
        const int K = 4 * (1 + (round < 40 ? round : random_number(520)));
        const int extreme = round % 4 == 3; /* every weight and input is as large as can be */
        int8_t *w = malloc((size_t)64 * K);
        uint8_t *a = malloc((size_t)most_rows * K);
        int *x = malloc(sizeof(int) * most_rows * K);
        for (int i = 0; i < 64 * K; i++)
            w[i] = (int8_t)(extreme ? (random_number(2) ? 127 : -128) : random_number(256) - 128);
        for (int i = 0; i < most_rows * K; i++) {
            x[i] = extreme ? (random_number(2) ? 127 : -127) : random_number(255) - 127;
            a[i] = (uint8_t)(x[i] + offset);
        }
        for (int rows = 1; rows <= most_rows; rows++) {
            int32_t *out = malloc(sizeof(int32_t) * 64 * rows);
            tiles(rows, a, K, w, out);
            for (int r = 0; r < rows; r++)
                for (int c = 0; c < 64; c++, compared++) {
                    int32_t sum = 0;
                    for (int k = 0; k < K; k++)
                        sum += (x[r * K + k] + offset) * w[(size_t)(k / 4) * 256 + 4 * c + k % 4];
                    wrong += out[64 * r + c] != sum;
                }
            free(out);
        }
        free(w), free(a), free(x);
    }
    printf("%s: %ld sums, %ld wrong\n", name, compared, wrong);
    return wrong > 0;
}

int main(void) {
    int failed = compare("plain", tiles_plain, 128, 1);
#if defined(__x86_64__)
    if (has_avx2()) failed |= compare("avx2", tiles_avx2, 0, 4);
    if (has_avx512_vnni()) failed |= compare("avx512_vnni", tiles_avx512_vnni, 128, 6);
#elif defined(__aarch64__)
    if (has_neon_dotprod()) failed |= compare("neon_dotprod", tiles_neon_dotprod, 0, 4);
    if (has_neon_i8mm()) failed |= compare("neon_i8mm", tiles_neon_i8mm, 0, 4);
#endif
    return failed;
}
