"""The C of a product of some rows with a matrix, whose sums stay in registers.

The matrix lies in panels: strips of columns, one after the other. Its rows as they are would fall into few places of a
cache and push one another out, where their number of columns is a power of two.
"""

PRODUCT = """\
#ifdef __AVX512F__
enum { LANES = 16, TILE = 8 };
#else
enum { LANES = 8, TILE = 6 };
#endif
enum { PANEL = 2 * LANES, MOST = 8 };
typedef float Lanes __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef struct { int64_t depth, y_step; const float *a, *w, *c; float *y; const char *ahead; int64_t stride; } Block;

#pragma GCC push_options
#pragma GCC optimize("fp-contract=fast")

/* y = c + a w for some rows and the columns of a panel. */
static inline __attribute__((always_inline)) void block(const int rows, const Block b) {
#pragma STDC FP_CONTRACT ON
  Lanes left[MOST], right[MOST];
  for (int r = 0; r < rows; r++) {
    const Lanes *c = (const Lanes *)(b.c + r * b.y_step);
    left[r] = b.c ? c[0] : (Lanes){0};
    right[r] = b.c ? c[1] : (Lanes){0};
  }
  for (int64_t k = 0; k < b.depth; k++) {
    const Lanes *w = (const Lanes *)(b.w + k * PANEL);
    const Lanes first = w[0], second = w[1];
    __builtin_prefetch(b.ahead + k * b.stride, 0, 2);
    for (int r = 0; r < rows; r++) {
      const float a = b.a[r * b.depth + k];
      left[r] += a * first;
      right[r] += a * second;
    }
  }
  for (int r = 0; r < rows; r++) {
    Lanes *y = (Lanes *)(b.y + r * b.y_step);
    y[0] = left[r];
    y[1] = right[r];
  }
}
static void blocks(int64_t rows, const Block b) {
  switch (rows) {
    case 1: block(1, b); break;
    case 2: block(2, b); break;
    case 3: block(3, b); break;
    case 4: block(4, b); break;
    case 5: block(5, b); break;
    case 6: block(6, b); break;
    case 7: block(7, b); break;
    default: block(MOST, b);
  }
}
#pragma GCC pop_options

/* The matrix in panels; behind its last columns stand zeros. */
static void keep_panels(int64_t depth, int64_t columns, const float *w, float *panels) {
  for (int64_t j = 0; j < columns; j += PANEL) {
    const int64_t width = columns - j < PANEL ? columns - j : PANEL;
    for (int64_t k = 0; k < depth; k++, panels += PANEL) {
      memcpy(panels, w + k * columns + j, width * sizeof(float));
      memset(panels + width, 0, (PANEL - width) * sizeof(float));
    }
  }
}

/* y = c + a w; `w` lies in panels; c may be NULL. Rows are shared out evenly: a tile of few would be slow. Each tile
   asks for a part of the next panel, which is far away where the matrix is larger than the cache of a core. */
static void product(int64_t rows, int64_t depth, int64_t columns, const float *a, const float *w, const float *c,
                    float *y) {
  const int64_t width = columns % PANEL, whole = columns - width, tiles = (rows + TILE - 1) / TILE;
  const int64_t stride = PANEL * sizeof(float) / tiles;
  for (int64_t j = 0; j < whole; j += PANEL)
    for (int64_t tile = 0; tile < tiles; tile++) {
      const int64_t r = rows * tile / tiles, at = r * columns + j;
      const char *ahead = (const char *)(w + (j + PANEL < whole ? j + PANEL : 0) * depth) + tile * depth * stride;
      const Block b = {depth, columns, a + r * depth, w + j * depth, c ? c + at : NULL, y + at, ahead, stride};
      blocks(rows * (tile + 1) / tiles - r, b);
    }
  for (int64_t tile = 0; tile < tiles && width; tile++) {
    const int64_t r = rows * tile / tiles, count = rows * (tile + 1) / tiles - r;
    float last[MOST * PANEL] = {0};
    for (int64_t i = 0; i < count && c; i++)
      for (int64_t j = 0; j < width; j++) last[i * PANEL + j] = c[(r + i) * columns + whole + j];
    const Block b = {depth, PANEL, a + r * depth, w + whole * depth, last, last, (const char *)w, 0};
    blocks(count, b);
    for (int64_t i = 0; i < count; i++)
      for (int64_t j = 0; j < width; j++) y[(r + i) * columns + whole + j] = last[i * PANEL + j];
  }
}
"""
