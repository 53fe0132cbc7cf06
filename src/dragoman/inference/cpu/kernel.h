/* Included once for each kind of machine, with NAME(x) giving each function its name there. */

#define CHUNK 512  /* outputs of the projection that are looked at together */
#define LARGE 8192 /* that are computed together, of a few hypotheses */
#define AHEAD 2    /* places between the one looked at and the one fetched */

static inline float NAME(widen)(uint16_t x) {
    uint32_t bits = (uint32_t)x << 16;
    float y;
    memcpy(&y, &bits, 4);
    return y;
}

static inline uint16_t NAME(narrow)(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

static inline float NAME(exponential)(float x) {
    /* 2^n 2^f, n whole and |f| at most a half: a polynomial of six terms; 4e-6 of it off at most */
    float y = x * 1.44269504f;
    y = y < -126.0f ? -126.0f : y;
    y = y > 126.0f ? 126.0f : y;
    int32_t n = (int32_t)(y + 127.5f); /* above 0, where cutting off is rounding */
    float f = (y - (float)(n - 127)) * 0.69314718f;
    float p = 1 + f * (1 + f * (0.5f + f * (0.16666667f + f * (0.04166664f + f * (0.00833689f + f * 0.00139f)))));
    union { int32_t bits; float power; } two = {n << 23};
    return p * two.power;
}

/* --- products of int8 --- */

static void NAME(quantize)(const float *x, int stride, int rows, int width, uint8_t *q, float *scales) {
    for (int r = 0; r < rows; r++, x += stride, q += width) {
        float most = 1e-12f;
        for (int i = 0; i < width; i++) {
            float size = fabsf(x[i]);
            most = size > most ? size : most;
        }
        float inverse = 127.0f / most;
        scales[r] = most / 127.0f;
        for (int i = 0; i < width; i++) q[i] = (uint8_t)(int)(x[i] * inverse + 128.5f);
    }
}

#if defined(VNNI)
#define MOST_ROWS 6
static inline __attribute__((always_inline)) void NAME(tile)(
    const int R, const uint8_t *a, int K, const int8_t *w, int32_t *out) {
    __m512i sum[MOST_ROWS][4];
    _Pragma("GCC unroll 8") for (int r = 0; r < R; r++)
        _Pragma("GCC unroll 4") for (int c = 0; c < 4; c++) sum[r][c] = _mm512_setzero_si512();
    for (int k = 0; k < K; k += 4, w += 256) {
        __m512i w0 = _mm512_loadu_si512(w), w1 = _mm512_loadu_si512(w + 64);
        __m512i w2 = _mm512_loadu_si512(w + 128), w3 = _mm512_loadu_si512(w + 192);
        _Pragma("GCC unroll 8") for (int r = 0; r < R; r++) {
            int32_t four;
            memcpy(&four, a + (size_t)r * K + k, 4);
            __m512i x = _mm512_set1_epi32(four);
            sum[r][0] = _mm512_dpbusd_epi32(sum[r][0], x, w0);
            sum[r][1] = _mm512_dpbusd_epi32(sum[r][1], x, w1);
            sum[r][2] = _mm512_dpbusd_epi32(sum[r][2], x, w2);
            sum[r][3] = _mm512_dpbusd_epi32(sum[r][3], x, w3);
        }
    }
    _Pragma("GCC unroll 8") for (int r = 0; r < R; r++)
        _Pragma("GCC unroll 4") for (int c = 0; c < 4; c++) _mm512_storeu_si512(out + 64 * r + 16 * c, sum[r][c]);
}
#elif defined(AVX2)
#define MOST_ROWS 1
static inline __attribute__((always_inline)) void NAME(tile)(
    const int R, const uint8_t *a, int K, const int8_t *w, int32_t *out) {
    /* As 16-bit products, for sums of two 8-bit products in 16 bits would saturate. */
    __m256i sum[8];
    for (int c = 0; c < 8; c++) sum[c] = _mm256_setzero_si256();
    for (int k = 0; k < K; k += 4, w += 256) {
        int32_t four;
        memcpy(&four, a + k, 4);
        __m256i x = _mm256_cvtepu8_epi16(_mm_set1_epi32(four));
        for (int c = 0; c < 8; c++) {
            __m256i low = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(w + 32 * c)));
            __m256i high = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(w + 32 * c + 16)));
            __m256i pair = _mm256_hadd_epi32(_mm256_madd_epi16(x, low), _mm256_madd_epi16(x, high));
            sum[c] = _mm256_add_epi32(sum[c], _mm256_permute4x64_epi64(pair, 0xd8));
        }
    }
    for (int c = 0; c < 8; c++) _mm256_storeu_si256((__m256i *)(out + 8 * c), sum[c]);
}
#else
#define MOST_ROWS 1
static inline void NAME(tile)(const int R, const uint8_t *a, int K, const int8_t *w, int32_t *out) {
    for (int c = 0; c < 64; c++) out[c] = 0;
    for (int k = 0; k < K; k += 4, w += 256)
        for (int c = 0; c < 64; c++)
            out[c] += a[k] * w[4 * c] + a[k + 1] * w[4 * c + 1] + a[k + 2] * w[4 * c + 2] +
                      a[k + 3] * w[4 * c + 3];
}
#endif

static void NAME(tiles)(int R, const uint8_t *a, int K, const int8_t *w, int32_t *out) {
#if defined(VNNI)
    switch (R) {
    case 1: NAME(tile)(1, a, K, w, out); return;
    case 2: NAME(tile)(2, a, K, w, out); return;
    case 3: NAME(tile)(3, a, K, w, out); return;
    case 4: NAME(tile)(4, a, K, w, out); return;
    case 5: NAME(tile)(5, a, K, w, out); return;
    default: NAME(tile)(6, a, K, w, out); return;
    }
#else
    NAME(tile)(1, a, K, w, out);
#endif
}

/* y = x W^T + b for the outputs from `from` to `to`, multiples of 64; y has rows of `width` */
static void NAME(product)(const Linear *l, const uint8_t *q, const float *scales, int rows,
                          int from, int to, float *y, int width) {
    const int K = l->inputs;
    int32_t sums[MOST_ROWS * 64] __attribute__((aligned(64)));
    for (int n = from; n < to; n += 64, y += 64) {
        const int8_t *w = l->weight + (size_t)n * K;
        const float *scale = l->scale + n, *bias = l->bias + n;
        const int32_t *offset = l->offset + n;
        for (int r = 0; r < rows; r += MOST_ROWS) {
            int R = rows - r < MOST_ROWS ? rows - r : MOST_ROWS;
            NAME(tiles)(R, q + (size_t)r * K, K, w, sums);
            for (int i = 0; i < R; i++) {
                float own = scales[r + i];
                float *out = y + (size_t)(r + i) * width;
                const int32_t *sum = sums + 64 * i;
                for (int c = 0; c < 64; c++)
                    out[c] = (float)(sum[c] - offset[c]) * (own * scale[c]) + bias[c];
            }
        }
    }
}

typedef struct {
    const Linear *l;
    const uint8_t *q;
    const float *scales;
    float *y;
    int rows, from, to, width, grain;
} NAME(Product);

static void NAME(piece)(void *given, int piece) {
    const NAME(Product) *p = given;
    int from = p->from + piece * p->grain, to = from + p->grain < p->to ? from + p->grain : p->to;
    NAME(product)(p->l, p->q, p->scales, p->rows, from, to, p->y + piece * p->grain, p->width);
}

static void NAME(shared_product)(Scratch *s, const Linear *l, const uint8_t *q, const float *scales,
                                 int rows, int from, int to, float *y, int width) {
    if (!s->team || (s->team->alone > 0 && s->team->alone--)) {
        NAME(product)(l, q, scales, rows, from, to, y, width);
        return;
    }
    int grain = ((to - from) / (4 * (s->team->count + 1)) + 63) & ~63;
    NAME(Product) job = {l, q, scales, y, rows, from, to, width, grain};
    together(s->team, NAME(piece), &job, (to - from + grain - 1) / grain);
}

/* x has rows of `stride`, of which the first inputs count; y has rows of all outputs */
static void NAME(linear)(Scratch *s, const Linear *l, const float *x, int stride, int rows, float *y) {
    uint8_t *q = room(s, 0, (size_t)rows * l->inputs);
    float *scales = room(s, 1, sizeof(float) * rows);
    NAME(quantize)(x, stride, rows, l->inputs, q, scales);
    NAME(shared_product)(s, l, q, scales, rows, 0, l->outputs, y, l->outputs);
}

/* --- the rest of a layer --- */

static void NAME(normalize)(const Model *m, const Norm *norm, const float *x, int rows, float *y) {
    const int M = m->d_model;
    for (int r = 0; r < rows; r++, x += M, y += M) {
        float sum = 0, squares = 0;
        for (int i = 0; i < M; i++) sum += x[i];
        float mean = sum / M;
        for (int i = 0; i < M; i++) squares += (x[i] - mean) * (x[i] - mean);
        float by = 1 / sqrtf(squares / M + m->epsilon);
        for (int i = 0; i < M; i++) y[i] = (x[i] - mean) * by * norm->gain[i] + norm->bias[i];
    }
}

/* x becomes x + y, normalised if norms come after; y has rows of `width` */
static void NAME(residual)(const Model *m, const Norm *norm, float *x, const float *y, int rows,
                           int width) {
    const int M = m->d_model;
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < M; i++) x[(size_t)r * M + i] += y[(size_t)r * width + i];
    if (!m->pre) NAME(normalize)(m, norm, x, rows, x);
}

static const float *NAME(before)(const Model *m, Scratch *s, const Norm *norm, const float *x,
                                 int rows) {
    if (!m->pre) return x;
    float *y = room(s, 2, sizeof(float) * rows * m->d_model);
    NAME(normalize)(m, norm, x, rows, y);
    return y;
}

static void NAME(activate)(const Model *m, float *x, size_t count) {
    if (m->activation == 0)
        for (size_t i = 0; i < count; i++) x[i] = x[i] > 0 ? x[i] : 0;
    else if (m->activation == 1)
        for (size_t i = 0; i < count; i++) x[i] *= 0.5f * (1 + erff(x[i] * 0.70710678f));
    else
        for (size_t i = 0; i < count; i++) x[i] /= 1 + NAME(exponential)(-x[i]);
}

static void NAME(feed_forward)(const Model *m, Scratch *s, const Linear *inner, const Linear *outer,
                               const Norm *norm, float *x, int rows) {
    float *h = room(s, 3, sizeof(float) * rows * inner->outputs);
    float *y = room(s, 4, sizeof(float) * rows * outer->outputs);
    NAME(linear)(s, inner, NAME(before)(m, s, norm, x, rows), m->d_model, rows, h);
    NAME(activate)(m, h, (size_t)rows * inner->outputs);
    NAME(linear)(s, outer, h, inner->outputs, rows, y);
    NAME(residual)(m, norm, x, y, rows, outer->outputs);
}

static void NAME(embed)(const Model *m, const Linear *pieces, int id, int position, float *x) {
    const int K = m->d_model;
    const int8_t *w = pieces->weight + (size_t)(id / 64) * 64 * K + 4 * (id % 64);
    float scale = pieces->scale[id] * m->scale;
    for (int k = 0; k < K; k += 4, w += 256)
        for (int i = 0; i < 4; i++) x[k + i] = w[i] * scale;
    if (m->positions) {
        if (position >= m->longest) position = m->longest - 1;
        const float *p = m->positions + (size_t)position * K;
        for (int k = 0; k < K; k++) x[k] += p[k];
    }
}

static inline void NAME(softmax)(float *x, int count) {
    float most = x[0], sum = 0;
    for (int i = 1; i < count; i++) most = x[i] > most ? x[i] : most;
    for (int i = 0; i < count; i++) {
        x[i] = NAME(exponential)(x[i] - most);
        sum += x[i];
    }
    float by = 1 / sum;
    for (int i = 0; i < count; i++) x[i] *= by;
}

/* --- encoder --- */

/* every position of one sentence to all of its positions; x has rows q | k | v of `width` */
static void NAME(look_around)(const Model *m, Scratch *s, const float *x, int length, int width,
                              float *y) {
    const int E = m->d_k, H = m->heads, padded = (length + 15) & ~15;
    float *keys = room(s, 5, sizeof(float) * E * padded);
    float *scores = room(s, 6, sizeof(float) * padded);
    float by = 1 / sqrtf((float)E);
    for (int h = 0; h < H; h++) {
        const float *k = x + H * E + h * E, *v = x + 2 * H * E + h * E;
        for (int j = 0; j < length; j++)
            for (int e = 0; e < E; e++) keys[(size_t)e * padded + j] = k[(size_t)j * width + e];
        for (int e = 0; e < E; e++)
            for (int j = length; j < padded; j++) keys[(size_t)e * padded + j] = 0;
        for (int i = 0; i < length; i++) {
            const float *q = x + (size_t)i * width + h * E;
            for (int j = 0; j < padded; j++) scores[j] = 0;
            for (int e = 0; e < E; e++) {
                float own = q[e] * by;
                const float *row = keys + (size_t)e * padded;
                for (int j = 0; j < padded; j++) scores[j] += own * row[j];
            }
            NAME(softmax)(scores, length);
            float *out = y + (size_t)i * H * E + h * E;
            for (int e = 0; e < E; e++) out[e] = 0;
            for (int j = 0; j < length; j++) {
                float weight = scores[j];
                const float *row = v + (size_t)j * width;
                for (int e = 0; e < E; e++) out[e] += weight * row[e];
            }
        }
    }
}

static void NAME(encode)(const Model *m, Scratch *s, int sentences, const int *lengths,
                         const int *ids, uint16_t **memories) {
    const int M = m->d_model, HE = m->heads * m->d_k;
    int rows = 0, most = 0;
    for (int i = 0; i < sentences; i++) rows += lengths[i];
    for (int l = 0; l < m->encoder_layers; l++)
        if (m->encoder[l].query_key_value.outputs > most) most = m->encoder[l].query_key_value.outputs;
    for (int l = 0; l < m->decoder_layers; l++)
        if (m->decoder[l].source_key_value.outputs > most) most = m->decoder[l].source_key_value.outputs;
    float *x = room(s, 7, sizeof(float) * rows * M);
    float *qkv = room(s, 8, sizeof(float) * rows * most);
    float *seen = room(s, 9, sizeof(float) * rows * HE);
    for (int i = 0, r = 0; i < sentences; i++)
        for (int j = 0; j < lengths[i]; j++, r++)
            NAME(embed)(m, &m->source_pieces, ids[r], j, x + (size_t)r * M);
    for (int l = 0; l < m->encoder_layers; l++) {
        const EncoderLayer *layer = &m->encoder[l];
        const int width = layer->query_key_value.outputs;
        NAME(linear)(s, &layer->query_key_value, NAME(before)(m, s, &layer->around_attention, x, rows), M,
                     rows, qkv);
        for (int i = 0, r = 0; i < sentences; r += lengths[i++])
            NAME(look_around)(m, s, qkv + (size_t)r * width, lengths[i], width, seen + (size_t)r * HE);
        float *y = room(s, 4, sizeof(float) * rows * layer->output.outputs);
        NAME(linear)(s, &layer->output, seen, HE, rows, y);
        NAME(residual)(m, &layer->around_attention, x, y, rows, layer->output.outputs);
        NAME(feed_forward)(m, s, &layer->inner, &layer->outer, &layer->around_feed_forward, x, rows);
    }
    if (m->pre) NAME(normalize)(m, &m->encoder_norm, x, rows, x);
    for (int l = 0; l < m->decoder_layers; l++) {
        const Linear *kv = &m->decoder[l].source_key_value;
        NAME(linear)(s, kv, x, M, rows, qkv);
        for (int i = 0, r = 0; i < sentences; i++)
            for (int j = 0; j < lengths[i]; j++, r++) {
                uint16_t *out = memories[i] + ((size_t)l * lengths[i] + j) * 2 * HE;
                const float *in = qkv + (size_t)r * kv->outputs;
                for (int e = 0; e < 2 * HE; e++) out[e] = NAME(narrow)(in[e]);
            }
    }
}

/* --- decoder --- */

/* the keys, or the values, of a place that is soon looked at: of many hypotheses none stays near */
static inline void NAME(fetch)(const uint16_t *x, int count) {
    for (int i = 0; i < count; i += 32) __builtin_prefetch(x + i);
}

static inline const uint16_t *NAME(place)(const uint16_t *places, const int *cells, int t, int width) {
    return places + (size_t)(cells ? cells[t] : t) * width;
}

/* one query of all heads to `count` places, each keys | values; cells says where they are, or NULL */
static void NAME(look)(const Model *m, float *scores, const float *q, const uint16_t *places,
                       const int *cells, int count, float *y) {
    const int E = m->d_k, H = m->heads, HE = H * E;
    float by = 1 / sqrtf((float)E);
    for (int t = 0; t < count; t++) {
        const uint16_t *k = NAME(place)(places, cells, t, 2 * HE);
        if (t + AHEAD < count) NAME(fetch)(NAME(place)(places, cells, t + AHEAD, 2 * HE), HE);
        for (int h = 0; h < H; h++) {
            float sum = 0;
            for (int e = 0; e < E; e++) sum += q[h * E + e] * NAME(widen)(k[h * E + e]);
            scores[(size_t)h * count + t] = sum * by;
        }
    }
    for (int h = 0; h < H; h++) NAME(softmax)(scores + (size_t)h * count, count);
    for (int i = 0; i < HE; i++) y[i] = 0;
    for (int t = 0; t < count; t++) {
        const uint16_t *v = NAME(place)(places, cells, t, 2 * HE) + HE;
        if (t + AHEAD < count) NAME(fetch)(NAME(place)(places, cells, t + AHEAD, 2 * HE) + HE, HE);
        for (int h = 0; h < H; h++) {
            float weight = scores[(size_t)h * count + t];
            for (int e = 0; e < E; e++) y[h * E + e] += weight * NAME(widen)(v[h * E + e]);
        }
    }
}

typedef struct { float most, sum; } NAME(Running);

/* the greatest of each 64, and of all */
static float NAME(tops)(const float *x, int count, float *best) {
    float most = -1e30f;
    for (int b = 0; b < count / 64; b++) {
        float top = x[64 * b];
        for (int i = 1; i < 64; i++) top = x[64 * b + i] > top ? x[64 * b + i] : top;
        best[b] = top;
        most = top > most ? top : most;
    }
    return most;
}

/* outputs that are looked at together, at most CHUNK, of row r: their part in its sum, and its
   candidates; names has their ids, or is NULL, and they are the ids from `from` on */
static void NAME(consider)(const Model *m, const Rows *rows, int r, float *own, const int *names,
                           int from, int count, NAME(Running) *running, Found *found) {
    const int C = rows->candidates;
    float best[CHUNK / 64], most = NAME(tops)(own, count, best);
    NAME(Running) *here = &running[r];
    if (most > here->most) {
        here->sum *= NAME(exponential)(here->most - most);
        here->most = most;
    }
    float sum = 0, level = here->most;
    for (int i = 0; i < count; i++) sum += NAME(exponential)(own[i] - level);
    here->sum += sum;
    if (rows->allowed) { /* what may not follow has its part in the sum all the same */
        const uint8_t *allowed = rows->allowed + (size_t)r * rows->kind_count;
        for (int i = 0; i < count; i++)
            own[i] = allowed[rows->kinds[names ? names[i] : from + i]] ? own[i] : -1e30f;
        NAME(tops)(own, count, best);
    }
    float *scores = found->log_probs + (size_t)r * C;
    int *ids = found->ids + (size_t)r * C;
    for (int b = 0; b < count / 64; b++) {
        if (best[b] <= scores[C - 1]) continue;
        for (int i = 64 * b; i < 64 * b + 64; i++) {
            int id = names ? names[i] : from + i;
            if (own[i] <= scores[C - 1] || (id < m->first && id != m->eos)) continue;
            int at = C - 1;
            for (; at > 0 && own[i] > scores[at - 1]; at--) {
                scores[at] = scores[at - 1];
                ids[at] = ids[at - 1];
            }
            scores[at] = own[i];
            ids[at] = id;
        }
    }
}

/* all outputs of l, of R rows: those from r on, or `which` */
static void NAME(look_through)(const Model *m, Scratch *s, const Rows *rows, const Linear *l,
                               const int *names, const uint8_t *q, const float *scales, int R, int r,
                               const int *which, NAME(Running) *running, Found *found) {
    const int chunk = R <= 8 ? LARGE : CHUNK;
    float *logits = room(s, 10, sizeof(float) * R * chunk);
    for (int from = 0; from < l->outputs; from += chunk) {
        int to = from + chunk < l->outputs ? from + chunk : l->outputs;
        NAME(shared_product)(s, l, q, scales, R, from, to, logits, chunk);
        for (int i = 0; i < R; i++)
            for (int at = from; at < to; at += CHUNK) /* sums must not depend on R */
                NAME(consider)(m, rows, which ? which[i] : r + i, logits + (size_t)i * chunk + (at - from),
                               names ? names + at : NULL, at, to - at < CHUNK ? to - at : CHUNK, running,
                               found);
    }
}

static void NAME(begin)(const Model *m, const Rows *rows, int r, NAME(Running) *running, Found *found) {
    const int C = rows->candidates;
    running[r].most = -1e30f;
    running[r].sum = 0;
    for (int c = r * C; c < (r + 1) * C; c++) {
        found->log_probs[c] = -1e30f;
        found->ids[c] = m->eos;
    }
}

/* the rows whose best is not sure are looked at again, with all outputs of the model */
static void NAME(look_again)(const Model *m, Scratch *s, const Rows *rows, uint8_t *q, float *scales,
                             NAME(Running) *running, Found *found) {
    const int K = m->projection.inputs;
    int *which = room(s, 12, sizeof(int) * rows->chosen), count = 0;
    for (int r = 0; r < rows->chosen; r++) {
        float best = found->log_probs[r * rows->candidates] - running[r].most;
        if (NAME(exponential)(best) >= rows->sure * running[r].sum) continue;
        NAME(begin)(m, rows, r, running, found);
        memmove(q + (size_t)count * K, q + (size_t)r * K, K);
        scales[count] = scales[r];
        which[count++] = r;
    }
    if (count)
        NAME(look_through)(m, s, rows, &m->projection, NULL, q, scales, count, 0, which, running, found);
}

/* the best candidates of each row, and the logarithm of the sum over all */
static void NAME(choose)(const Model *m, Scratch *s, const Rows *rows, const float *x, Found *found) {
    const Linear *l = rows->projection;
    const int R = rows->chosen, C = rows->candidates, K = l->inputs;
    uint8_t *q = room(s, 0, (size_t)R * K);
    float *scales = room(s, 1, sizeof(float) * R);
    NAME(Running) *running = room(s, 11, sizeof(NAME(Running)) * R);
    NAME(quantize)(x, K, R, K, q, scales);
    for (int r = 0; r < R; r++) NAME(begin)(m, rows, r, running, found);
    NAME(look_through)(m, s, rows, l, rows->names, q, scales, R, 0, NULL, running, found);
    for (int r = 0, next = 0; rows->own && r < R; r = next) {
        int sentence = rows->hypotheses[r] / rows->beams;
        for (next = r + 1; next < R && rows->hypotheses[next] / rows->beams == sentence;) next++;
        NAME(look_through)(m, s, rows, &rows->own[sentence], rows->own_names[sentence], q + (size_t)r * K,
                           scales + r, next - r, r, NULL, running, found);
    }
    if (rows->own && rows->sure > 0) NAME(look_again)(m, s, rows, q, scales, running, found);
    for (int r = 0; r < R; r++) {
        float total = running[r].most + logf(running[r].sum);
        for (int c = 0; c < C; c++) found->log_probs[r * C + c] -= total;
    }
}

static void NAME(step)(const Model *m, Scratch *s, const Rows *rows, Found *found) {
    const int M = m->d_model, HE = m->heads * m->d_k;
    int R = rows->count, longest = 1, widest = 0;
    for (int r = 0; r < R; r++) {
        if (rows->positions[r] + 1 > longest) longest = rows->positions[r] + 1;
        int length = rows->source_lengths[rows->hypotheses[r] / rows->beams];
        if (length > longest) longest = length;
    }
    for (int l = 0; l < m->decoder_layers; l++)
        if (m->decoder[l].query_key_value.outputs > widest) widest = m->decoder[l].query_key_value.outputs;
    float *x = room(s, 7, sizeof(float) * R * M);
    float *qkv = room(s, 8, sizeof(float) * R * widest);
    float *seen = room(s, 9, sizeof(float) * R * HE);
    float *scores = room(s, 6, sizeof(float) * m->heads * longest);
    for (int r = 0; r < R; r++)
        NAME(embed)(m, &m->target_pieces, rows->ids[r], rows->positions[r], x + (size_t)r * M);
    for (int l = 0; l < m->decoder_layers; l++) {
        const DecoderLayer *layer = &m->decoder[l];
        uint16_t *cache = rows->cache + (size_t)l * rows->cache_cells * 2 * HE;
        int width = layer->query_key_value.outputs;
        NAME(linear)(s, &layer->query_key_value, NAME(before)(m, s, &layer->around_attention, x, R), M, R, qkv);
        for (int r = 0; r < R; r++) { /* all before any looks: two pieces may be one hypothesis's */
            const int *cells = rows->tables + (size_t)rows->hypotheses[r] * rows->table_width;
            uint16_t *own = cache + (size_t)cells[rows->positions[r]] * 2 * HE;
            const float *in = qkv + (size_t)r * width + HE;
            for (int e = 0; e < 2 * HE; e++) own[e] = NAME(narrow)(in[e]);
        }
        if (l == m->decoder_layers - 1) R = rows->chosen; /* of the others nothing more is needed */
        for (int r = 0; r < R; r++) {
            const int *cells = rows->tables + (size_t)rows->hypotheses[r] * rows->table_width;
            NAME(look)(m, scores, qkv + (size_t)r * width, cache, cells, rows->positions[r] + 1,
                       seen + (size_t)r * HE);
        }
        float *y = room(s, 4, sizeof(float) * R * layer->output.outputs);
        NAME(linear)(s, &layer->output, seen, HE, R, y);
        NAME(residual)(m, &layer->around_attention, x, y, R, layer->output.outputs);

        width = layer->source_query.outputs;
        NAME(linear)(s, &layer->source_query, NAME(before)(m, s, &layer->around_source, x, R), M, R, qkv);
        for (int r = 0; r < R; r++) {
            int sentence = rows->hypotheses[r] / rows->beams, length = rows->source_lengths[sentence];
            const uint16_t *memory = rows->memories[sentence] + (size_t)l * length * 2 * HE;
            NAME(look)(m, scores, qkv + (size_t)r * width, memory, NULL, length, seen + (size_t)r * HE);
        }
        y = room(s, 4, sizeof(float) * R * layer->source_output.outputs);
        NAME(linear)(s, &layer->source_output, seen, HE, R, y);
        NAME(residual)(m, &layer->around_source, x, y, R, layer->source_output.outputs);
        NAME(feed_forward)(m, s, &layer->inner, &layer->outer, &layer->around_feed_forward, x, R);
    }
    if (m->pre) NAME(normalize)(m, &m->decoder_norm, x, R, x);
    NAME(choose)(m, s, rows, x, found);
}

#undef CHUNK
#undef LARGE
#undef AHEAD
#undef MOST_ROWS
