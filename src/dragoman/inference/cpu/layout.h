/* The structures that Python fills in; kernel_library.py has the same. */

typedef struct {
    int outputs, inputs;   /* N and K of y = x W^T + b; N is padded to a multiple of 64 */
    const int8_t *weight;  /* [N / 64][K / 4][64][4] */
    const float *scale;    /* of each output */
    const int32_t *offset; /* 128 times the sum of its weights, for inputs that are stored plus 128 */
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
    int predicted;           /* after the first so many of them the next piece is predicted */
    int candidates;          /* wanted of each of these */
    int beams;               /* hypotheses of a sentence */
    int table_width;
    const int *ids;
    const int *positions;    /* of each, how many pieces came before it */
    const int *hypotheses;   /* its own: beams times its sentence, and its beam */
    const int *cache_tables; /* [hypotheses][table_width]: where in the cache their pieces are */
    const int *source_lengths;
    uint16_t **source_caches; /* of each sentence: [layers][length][2 heads d_k] */
    uint16_t *cache;          /* [layers][cache_positions][2 heads d_k] */
    int64_t cache_positions;
    const Linear *projection;  /* the model's, or the part of it on the shortlist */
    const int *projection_ids; /* the ids of its outputs; NULL: they are numbered from 0 */
    const int *token_kinds;    /* of ids */
    const uint8_t *allowed;    /* [predicted][kind_count]: which may follow; NULL: all */
    int kind_count;
    const Linear *sentence_projections;   /* what each sentence has more of; NULL: nothing */
    const int **sentence_projection_ids;  /* the ids of these outputs */
    float min_confidence; /* below this probability of the best piece, all pieces are computed */
    const int *next;      /* the piece that follows each predicted one, if known; NULL: it is not */
    int attention_width;  /* of the rows of StepOutput's attention */
} StepInput;

typedef struct {
    int *ids;         /* [predicted][candidates], best first */
    float *log_probs; /* the same */
    float *next_log_probs; /* [predicted]: of the piece that follows; NULL: not wanted */
    float *attention; /* [predicted][attention_width]: to the source, the mean of the last layer's
                         heads; NULL: not wanted */
} StepOutput;

#define BUFFERS 13
typedef struct {
    void *buffer[BUFFERS];
    size_t size[BUFFERS];
    ThreadPool *pool; /* NULL: nobody helps */
} Scratch;

static inline void *scratch_buffer(Scratch *s, int which, size_t bytes) {
    if (s->size[which] < bytes) {
        free_aligned(s->buffer[which]);
        s->size[which] = bytes + bytes / 4;
        s->buffer[which] = allocate_aligned(s->size[which]);
    }
    return s->buffer[which];
}
