/* What Python hands over; engine/native.py has the same structures. */

typedef struct {
    int outputs, inputs;   /* N and K of y = x W^T + b; N is padded to a multiple of 64 */
    const int8_t *weight;  /* [N / 64][K / 4][64][4] */
    const float *scale;    /* of each output */
    const int32_t *offset; /* 128 times the sum of its weights: inputs are stored plus 128 */
    const float *bias;     /* zeros where there is none */
} Linear;

typedef struct { const float *gain, *bias; } Norm;

typedef struct {
    Linear query_key_value, output, inner, outer;
    Norm around_attention, around_feed_forward;
} EncoderLayer;

typedef struct {
    Linear query_key_value, output, source_query, source_key_value, source_output, inner, outer;
    Norm around_attention, around_source, around_feed_forward;
} DecoderLayer;

typedef struct {
    int d_model, heads, d_k, d_ff, encoder_layers, decoder_layers;
    int vocabulary;  /* ids that can be produced */
    int pre;         /* normalisation before the sub-layers */
    int activation;  /* 0 ReLU, 1 GELU, 2 Swish */
    int eos, first;  /* the ids a search may produce: eos, and those from first on */
    float epsilon, scale;
    const EncoderLayer *encoder;
    const DecoderLayer *decoder;
    Linear source_pieces, target_pieces, projection;
    Norm encoder_norm, decoder_norm;
    const float *positions; /* [longest][d_model], of the encoder and the decoder */
    int longest;
} Model;

typedef struct {
    int count;               /* pieces whose keys and values are computed */
    int chosen;              /* the first so many of them end a hypothesis that is to go on */
    int candidates;          /* wanted of each of these */
    int beams;               /* hypotheses of a sentence */
    int table_width;
    const int *ids;
    const int *positions;    /* of each, how many pieces came before it */
    const int *hypotheses;   /* its own: beams times its sentence, and its beam */
    const int *tables;       /* [hypotheses][table_width]: the cells of their keys and values */
    const int *source_lengths;
    uint16_t **memories;     /* of each sentence: [layers][length][2 heads d_k] */
    uint16_t *cache;         /* [layers][cells][2 heads d_k] */
    int64_t cache_cells;
    const Linear *projection; /* the model's, or a part of it */
    const int *names;         /* the ids of its outputs; NULL: they are their places */
    const int *kinds;         /* of ids */
    const uint8_t *allowed;   /* [chosen][kind_count]: which may follow; NULL: all */
    int kind_count;
    const Linear *own;        /* of each sentence, a part that only it has; NULL: there is none */
    const int **own_names;    /* the ids of these outputs */
    float sure;               /* a best piece less probable than this in its parts is looked for in all */
} Rows;

typedef struct {
    int *ids;         /* [chosen][candidates], best first */
    float *log_probs; /* the same */
} Found;

#define ROOMS 13
typedef struct {
    void *room[ROOMS];
    size_t size[ROOMS];
    Team *team; /* NULL: nobody helps */
} Scratch;

static inline void *room(Scratch *s, int which, size_t bytes) {
    if (s->size[which] < bytes) {
        free(s->room[which]);
        s->size[which] = bytes + bytes / 4;
        s->room[which] = aligned_alloc(64, (s->size[which] + 63) & ~(size_t)63);
    }
    return s->room[which];
}
