/* Included once for each instruction set, with NAME(x) giving each function its name there. */

#define CHUNK_OUTPUTS 512 /* outputs of the projection that candidates are taken from together */
#define LARGE_CHUNK 8192  /* outputs that are computed together, if hypotheses are few */
#define DISTANCE 2        /* cache entries between the one used and the one prefetched */

static inline float NAME(from_bf16)(uint16_t x) {
    uint32_t bits = (uint32_t)x << 16;
    float y;
    memcpy(&y, &bits, 4);
    return y;
}

static inline uint16_t NAME(to_bf16)(float x) {
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

#include "products.h"

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

static const float *NAME(pre_norm)(const Model *m, Scratch *s, const Norm *norm, const float *x,
                                 int rows) {
    if (!m->pre) return x;
    float *y = scratch_buffer(s, 2, sizeof(float) * rows * m->d_model);
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
    float *h = scratch_buffer(s, 3, sizeof(float) * rows * inner->outputs);
    float *y = scratch_buffer(s, 4, sizeof(float) * rows * outer->outputs);
    NAME(linear)(s, inner, NAME(pre_norm)(m, s, norm, x, rows), m->d_model, rows, h);
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

/* scores[j] = the product of q with column j of keys, for 32 columns; keys has E rows of `width` */
static inline void NAME(score_columns)(const float *q, const float *keys, int E, int width, float *scores) {
    float sums[32] = {0};
    for (int e = 0; e < E; e++)
        for (int j = 0; j < 32; j++) sums[j] += q[e] * keys[(size_t)e * width + j];
    memcpy(scores, sums, sizeof sums);
}

/* out = the sum of `count` rows of 32 numbers, `width` apart, each times its weight */
static inline void NAME(weigh_rows)(const float *weights, const float *rows, int count, int width, float *out) {
    float sums[32] = {0};
    for (int j = 0; j < count; j++)
        for (int e = 0; e < 32; e++) sums[e] += weights[j] * rows[(size_t)j * width + e];
    memcpy(out, sums, sizeof sums);
}

/* attention of every position of one sentence to all of them; x has rows q | k | v of `width` */
static void NAME(encoder_attention)(const Model *m, Scratch *s, const float *x, int length, int width,
                              float *y) {
    const int E = m->d_k, H = m->heads, padded = (length + 31) & ~31;
    float *keys = scratch_buffer(s, 5, sizeof(float) * E * padded);
    float *scores = scratch_buffer(s, 6, sizeof(float) * padded);
    float by = 1 / sqrtf((float)E);
    for (int h = 0; h < H; h++) {
        const float *k = x + H * E + h * E, *v = x + 2 * H * E + h * E;
        for (int j = 0; j < length; j++)
            for (int e = 0; e < E; e++) keys[(size_t)e * padded + j] = k[(size_t)j * width + e] * by;
        for (int e = 0; e < E; e++)
            for (int j = length; j < padded; j++) keys[(size_t)e * padded + j] = 0;
        for (int i = 0; i < length; i++) {
            const float *q = x + (size_t)i * width + h * E;
            for (int j = 0; j < padded; j += 32) NAME(score_columns)(q, keys + j, E, padded, scores + j);
            NAME(softmax)(scores, length);
            float *out = y + (size_t)i * H * E + h * E;
            int e = 0;
            for (; e + 32 <= E; e += 32) NAME(weigh_rows)(scores, v + e, length, width, out + e);
            for (; e < E; e++) {
                out[e] = 0;
                for (int j = 0; j < length; j++) out[e] += scores[j] * v[(size_t)j * width + e];
            }
        }
    }
}

static void NAME(encode)(const Model *m, Scratch *s, int sentences, const int *lengths,
                         const int *ids, uint16_t **source_caches) {
    const int M = m->d_model, HE = m->heads * m->d_k;
    int rows = 0, most = 0;
    for (int i = 0; i < sentences; i++) rows += lengths[i];
    for (int l = 0; l < m->encoder_layers; l++)
        if (m->encoder[l].query_key_value.outputs > most) most = m->encoder[l].query_key_value.outputs;
    for (int l = 0; l < m->decoder_layers; l++)
        if (m->decoder[l].source_key_value.outputs > most) most = m->decoder[l].source_key_value.outputs;
    float *x = scratch_buffer(s, 7, sizeof(float) * rows * M);
    float *qkv = scratch_buffer(s, 8, sizeof(float) * rows * most);
    float *attended = scratch_buffer(s, 9, sizeof(float) * rows * HE);
    for (int i = 0, r = 0; i < sentences; i++)
        for (int j = 0; j < lengths[i]; j++, r++)
            NAME(embed)(m, &m->source_pieces, ids[r], j, x + (size_t)r * M);
    for (int l = 0; l < m->encoder_layers; l++) {
        const EncoderLayer *layer = &m->encoder[l];
        const int width = layer->query_key_value.outputs;
        NAME(linear)(s, &layer->query_key_value, NAME(pre_norm)(m, s, &layer->around_attention, x, rows), M,
                     rows, qkv);
        for (int i = 0, r = 0; i < sentences; r += lengths[i++])
            NAME(encoder_attention)(m, s, qkv + (size_t)r * width, lengths[i], width, attended + (size_t)r * HE);
        float *y = scratch_buffer(s, 4, sizeof(float) * rows * layer->output.outputs);
        NAME(linear)(s, &layer->output, attended, HE, rows, y);
        NAME(residual)(m, &layer->around_attention, x, y, rows, layer->output.outputs);
        NAME(feed_forward)(m, s, &layer->inner, &layer->outer, &layer->around_feed_forward, x, rows);
    }
    if (m->pre) NAME(normalize)(m, &m->encoder_norm, x, rows, x);
    for (int l = 0; l < m->decoder_layers; l++) {
        const Linear *kv = &m->decoder[l].source_key_value;
        NAME(linear)(s, kv, x, M, rows, qkv);
        for (int i = 0, r = 0; i < sentences; i++)
            for (int j = 0; j < lengths[i]; j++, r++) {
                uint16_t *out = source_caches[i] + ((size_t)l * lengths[i] + j) * 2 * HE;
                const float *in = qkv + (size_t)r * kv->outputs;
                for (int e = 0; e < 2 * HE; e++) out[e] = NAME(to_bf16)(in[e]);
            }
    }
}

/* --- decoder --- */

/* the keys, or the values, of a position that is soon used: of many hypotheses none stays near */
static inline void NAME(prefetch)(const uint16_t *x, int count) {
    for (int i = 0; i < count; i += 32) __builtin_prefetch(x + i);
}

static inline const uint16_t *NAME(cache_entry)(const uint16_t *entries, const int *table, int t,
                                                int width) {
    return entries + (size_t)(table ? table[t] : t) * width;
}

/* attention of one query of all heads of width E to `count` cache entries, each keys | values; the
   table says where they are, or is NULL */
static inline __attribute__((always_inline)) void NAME(attend_heads)(
    const int E, const int H, float *scores, const float *q, const uint16_t *entries, const int *table, int count, float *y) {
    const int HE = H * E;
    float by = 1 / sqrtf((float)E);
    for (int t = 0; t < count; t++) {
        const uint16_t *k = NAME(cache_entry)(entries, table, t, 2 * HE);
        if (t + DISTANCE < count) NAME(prefetch)(NAME(cache_entry)(entries, table, t + DISTANCE, 2 * HE), 2 * HE);
        for (int h = 0; h < H; h++) {
            float sum = 0;
            for (int e = 0; e < E; e++) sum += q[h * E + e] * NAME(from_bf16)(k[h * E + e]);
            scores[(size_t)h * count + t] = sum * by;
        }
    }
    for (int h = 0; h < H; h++) NAME(softmax)(scores + (size_t)h * count, count);
    for (int i = 0; i < HE; i++) y[i] = 0;
    int t = 0;
    for (; t + 2 <= count; t += 2) { /* two at a time: half as often y is read and written */
        const uint16_t *v = NAME(cache_entry)(entries, table, t, 2 * HE) + HE;
        const uint16_t *next = NAME(cache_entry)(entries, table, t + 1, 2 * HE) + HE;
        for (int h = 0; h < H; h++) {
            const float weight = scores[(size_t)h * count + t], other = scores[(size_t)h * count + t + 1];
            for (int e = 0; e < E; e++)
                y[h * E + e] += weight * NAME(from_bf16)(v[h * E + e]) + other * NAME(from_bf16)(next[h * E + e]);
        }
    }
    if (t < count) {
        const uint16_t *v = NAME(cache_entry)(entries, table, t, 2 * HE) + HE;
        for (int h = 0; h < H; h++) {
            const float weight = scores[(size_t)h * count + t];
            for (int e = 0; e < E; e++) y[h * E + e] += weight * NAME(from_bf16)(v[h * E + e]);
        }
    }
}

static void NAME(attend)(const Model *m, float *scores, const float *q, const uint16_t *entries, const int *table,
                         int count, float *y) {
    if (m->d_k == 64) NAME(attend_heads)(64, m->heads, scores, q, entries, table, count, y); /* the usual width */
    else NAME(attend_heads)(m->d_k, m->heads, scores, q, entries, table, count, y);
}

typedef struct { float most, sum; } NAME(Softmax);

/* the greatest of each 64, and of all */
static float NAME(block_maxima)(const float *x, int count, float *best) {
    float most = -1e30f;
    for (int b = 0; b < count / 64; b++) {
        float top = x[64 * b];
        for (int i = 1; i < 64; i++) top = x[64 * b + i] > top ? x[64 * b + i] : top;
        best[b] = top;
        most = top > most ? top : most;
    }
    return most;
}

/* add some outputs of row r, at most CHUNK_OUTPUTS, to the softmax's sum, and take the best among
   its candidates; output_ids has their ids, or is NULL, and they are the ids from `from` on */
static void NAME(take_candidates)(const Model *m, const StepInput *step, int r, float *own, const int *output_ids,
                           int from, int count, NAME(Softmax) *running, StepOutput *found) {
    const int C = step->candidates;
    float best[CHUNK_OUTPUTS / 64], most = NAME(block_maxima)(own, count, best);
    NAME(Softmax) *here = &running[r];
    if (most > here->most) {
        here->sum *= NAME(exponential)(here->most - most);
        here->most = most;
    }
    float sum = 0, level = here->most;
    for (int i = 0; i < count; i++) sum += NAME(exponential)(own[i] - level);
    here->sum += sum;
    if (step->next && !output_ids && step->next[r] >= from && step->next[r] < from + count)
        found->next_log_probs[r] = own[step->next[r] - from];
    const uint8_t *allowed = step->allowed ? step->allowed + (size_t)r * step->kind_count : NULL;
    if (allowed && memchr(allowed, 0, step->kind_count)) {
        /* what may not follow has its part in the sum all the same */
        for (int i = 0; i < count; i++)
            own[i] = allowed[step->token_kinds[output_ids ? output_ids[i] : from + i]] ? own[i] : -1e30f;
        NAME(block_maxima)(own, count, best);
    }
    float *scores = found->log_probs + (size_t)r * C;
    int *ids = found->ids + (size_t)r * C;
    for (int b = 0; b < count / 64; b++) {
        if (best[b] <= scores[C - 1]) continue;
        for (int i = 64 * b; i < 64 * b + 64; i++) {
            int id = output_ids ? output_ids[i] : from + i;
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

/* take candidates from all outputs of l, of R rows: those from r on, or `which` */
static void NAME(project)(const Model *m, Scratch *s, const StepInput *step, const Linear *l,
                               const int *output_ids, const uint8_t *q, const float *scales, int R, int r,
                               const int *which, NAME(Softmax) *running, StepOutput *found) {
    const int chunk = R <= 8 ? LARGE_CHUNK : CHUNK_OUTPUTS;
    float *logits = scratch_buffer(s, 10, sizeof(float) * R * chunk);
    for (int from = 0; from < l->outputs; from += chunk) {
        int to = from + chunk < l->outputs ? from + chunk : l->outputs;
        NAME(shared_product)(s, l, q, scales, R, from, to, logits, chunk);
        for (int i = 0; i < R; i++)
            for (int at = from; at < to; at += CHUNK_OUTPUTS) /* sums must not depend on R */
                NAME(take_candidates)(m, step, which ? which[i] : r + i, logits + (size_t)i * chunk + (at - from),
                               output_ids ? output_ids + at : NULL, at, to - at < CHUNK_OUTPUTS ? to - at : CHUNK_OUTPUTS, running,
                               found);
    }
}

static void NAME(start_row)(const Model *m, const StepInput *step, int r, NAME(Softmax) *running, StepOutput *found) {
    const int C = step->candidates;
    running[r].most = -1e30f;
    running[r].sum = 0;
    for (int c = r * C; c < (r + 1) * C; c++) {
        found->log_probs[c] = -1e30f;
        found->ids[c] = m->eos;
    }
}

/* compute all outputs of the model for the rows whose best piece is not probable enough */
static void NAME(project_unsure)(const Model *m, Scratch *s, const StepInput *step, uint8_t *q, float *scales,
                             NAME(Softmax) *running, StepOutput *found) {
    const int K = m->projection.inputs;
    int *which = scratch_buffer(s, 12, sizeof(int) * step->predicted), count = 0;
    for (int r = 0; r < step->predicted; r++) {
        float best = found->log_probs[r * step->candidates] - running[r].most;
        if (NAME(exponential)(best) >= step->min_confidence * running[r].sum) continue;
        NAME(start_row)(m, step, r, running, found);
        memmove(q + count * ROW_BYTES(K), q + r * ROW_BYTES(K), ROW_BYTES(K));
        scales[count] = scales[r];
        which[count++] = r;
    }
    if (count)
        NAME(project)(m, s, step, &m->projection, NULL, q, scales, count, 0, which, running, found);
}

/* the best candidates of each row, and their log-probabilities */
static void NAME(predict)(const Model *m, Scratch *s, const StepInput *step, const float *x, StepOutput *found) {
    const Linear *l = step->projection;
    const int R = step->predicted, C = step->candidates, K = l->inputs;
    uint8_t *q = NAME(input_buffer)(s, R, K);
    float *scales = scratch_buffer(s, 1, sizeof(float) * R);
    NAME(Softmax) *running = scratch_buffer(s, 11, sizeof(NAME(Softmax)) * R);
    NAME(quantize)(x, K, R, K, q, scales);
    for (int r = 0; r < R; r++) NAME(start_row)(m, step, r, running, found);
    NAME(project)(m, s, step, l, step->projection_ids, q, scales, R, 0, NULL, running, found);
    for (int r = 0, next = 0; step->sentence_projections && r < R; r = next) {
        int sentence = step->hypotheses[r] / step->beams;
        for (next = r + 1; next < R && step->hypotheses[next] / step->beams == sentence;) next++;
        NAME(project)(m, s, step, &step->sentence_projections[sentence],
                      step->sentence_projection_ids[sentence], q + r * ROW_BYTES(K), scales + r, next - r, r,
                      NULL, running, found);
    }
    if (step->sentence_projections && step->min_confidence > 0)
        NAME(project_unsure)(m, s, step, q, scales, running, found);
    for (int r = 0; r < R; r++) {
        float total = running[r].most + logf(running[r].sum);
        for (int c = 0; c < C; c++) found->log_probs[r * C + c] -= total;
        if (step->next) found->next_log_probs[r] -= total;
    }
}

static void NAME(step)(const Model *m, Scratch *s, const StepInput *step, StepOutput *found) {
    const int M = m->d_model, HE = m->heads * m->d_k;
    int R = step->count, longest = 1, widest = 0;
    for (int r = 0; r < R; r++) {
        if (step->positions[r] + 1 > longest) longest = step->positions[r] + 1;
        int length = step->source_lengths[step->hypotheses[r] / step->beams];
        if (length > longest) longest = length;
    }
    for (int l = 0; l < m->decoder_layers; l++)
        if (m->decoder[l].query_key_value.outputs > widest) widest = m->decoder[l].query_key_value.outputs;
    float *x = scratch_buffer(s, 7, sizeof(float) * R * M);
    float *qkv = scratch_buffer(s, 8, sizeof(float) * R * widest);
    float *attended = scratch_buffer(s, 9, sizeof(float) * R * HE);
    float *scores = scratch_buffer(s, 6, sizeof(float) * m->heads * longest);
    for (int r = 0; r < R; r++)
        NAME(embed)(m, &m->target_pieces, step->ids[r], step->positions[r], x + (size_t)r * M);
    for (int l = 0; l < m->decoder_layers; l++) {
        const DecoderLayer *layer = &m->decoder[l];
        uint16_t *cache = step->cache + (size_t)l * step->cache_positions * 2 * HE;
        int width = layer->query_key_value.outputs;
        NAME(linear)(s, &layer->query_key_value, NAME(pre_norm)(m, s, &layer->around_attention, x, R), M, R, qkv);
        for (int r = 0; r < R; r++) { /* all before any attends: two pieces may be one hypothesis's */
            const int *table = step->cache_tables + (size_t)step->hypotheses[r] * step->table_width;
            uint16_t *own = cache + (size_t)table[step->positions[r]] * 2 * HE;
            const float *in = qkv + (size_t)r * width + HE;
            for (int e = 0; e < 2 * HE; e++) own[e] = NAME(to_bf16)(in[e]);
        }
        if (l == m->decoder_layers - 1) R = step->predicted; /* of the others nothing more is needed */
        for (int r = 0; r < R; r++) {
            const int *table = step->cache_tables + (size_t)step->hypotheses[r] * step->table_width;
            NAME(attend)(m, scores, qkv + (size_t)r * width, cache, table, step->positions[r] + 1,
                       attended + (size_t)r * HE);
        }
        float *y = scratch_buffer(s, 4, sizeof(float) * R * layer->output.outputs);
        NAME(linear)(s, &layer->output, attended, HE, R, y);
        NAME(residual)(m, &layer->around_attention, x, y, R, layer->output.outputs);

        width = layer->source_query.outputs;
        NAME(linear)(s, &layer->source_query, NAME(pre_norm)(m, s, &layer->around_source, x, R), M, R, qkv);
        for (int r = 0; r < R; r++) {
            int sentence = step->hypotheses[r] / step->beams, length = step->source_lengths[sentence];
            const uint16_t *memory = step->source_caches[sentence] + (size_t)l * length * 2 * HE;
            NAME(attend)(m, scores, qkv + (size_t)r * width, memory, NULL, length, attended + (size_t)r * HE);
            if (found->attention && l == m->decoder_layers - 1) {
                float *row = found->attention + (size_t)r * step->attention_width;
                for (int t = 0; t < length; t++) {
                    float sum = 0;
                    for (int h = 0; h < m->heads; h++) sum += scores[(size_t)h * length + t];
                    row[t] = sum / m->heads;
                }
            }
        }
        y = scratch_buffer(s, 4, sizeof(float) * R * layer->source_output.outputs);
        NAME(linear)(s, &layer->source_output, attended, HE, R, y);
        NAME(residual)(m, &layer->around_source, x, y, R, layer->source_output.outputs);
        NAME(feed_forward)(m, s, &layer->inner, &layer->outer, &layer->around_feed_forward, x, R);
    }
    if (m->pre) NAME(normalize)(m, &m->decoder_norm, x, R, x);
    NAME(predict)(m, s, step, x, found);
}

#undef CHUNK_OUTPUTS
#undef LARGE_CHUNK
#undef DISTANCE
#undef ROW_BYTES
#undef NEGATIVE
#undef USED_FOURS
#undef PARTS
