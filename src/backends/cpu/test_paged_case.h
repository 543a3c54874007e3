#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "backends/cpu/cpu_ops.h"
#include "ops/attention.h"
#include "ref/attention_ref.h"
#include "ref/random_data.h"

namespace triptych {

struct Shape4 {
  DType dtype = DType::kF32;
  int64_t n_heads = 4;
  int64_t n_kv_heads = 2;
  int64_t head_dim = 64;
  int64_t window = 0;
  float scale = 0;  ///< 0: 1 / sqrt(head_dim)
};

/// A KV cache with permuted page tables and, for each sequence, queries, keys and values of all
/// its tokens. Every byte of the cache starts as a NaN: slots that hold no token must never count.
/// Pages are full, or filled as `page_begin` of SequenceRows says.
class PagedCase {
 public:
  PagedCase(const Shape4& shape, const std::vector<int64_t>& lengths)
      : PagedCase(shape, lengths, std::vector<std::vector<int32_t>>(lengths.size())) {}
  static PagedCase with_layouts(const Shape4& shape,
                                const std::vector<std::vector<int32_t>>& layouts) {
    return PagedCase(shape, lengths_of(layouts), layouts);
  }

  int64_t q_width() const { return shape_.n_heads * shape_.head_dim; }
  int64_t kv_width() const { return shape_.n_kv_heads * shape_.head_dim; }
  std::vector<float>& v(size_t i) { return v_[i]; }
  std::vector<float>& k(size_t i) { return k_[i]; }
  std::vector<float>& q(size_t i) { return q_[i]; }
  void reset_cache(int byte = 0xff) { std::memset(memory_.data(), byte, memory_.size()); }
  /// Tables of pages end with the last token that is there, as while decoding, instead of being
  /// the whole sequence's from the start.
  void cut_tables() { cut_tables_ = true; }

  /// The first `n_pages` pages of sequence i, filled alike, are from now on those of `other`, with
  /// what they hold. run_batch says so to the kernel where the two are neighbours.
  void share_pages(size_t i, size_t other, int64_t n_pages) {
    std::copy_n(pages_[other].begin(), n_pages, pages_[i].begin());
    const int64_t n = page_begin_[i].empty() ? n_pages * kPageTokens
                                             : page_begin_[i][static_cast<size_t>(n_pages)];
    std::copy_n(k_[other].begin(), n * kv_width(), k_[i].begin());
    std::copy_n(v_[other].begin(), n * kv_width(), v_[i].begin());
  }

  /// Positions [begin, end) of sequence i written and attended in one call; [end - begin, q_width].
  std::vector<float> run(size_t i, int64_t begin, int64_t end, CpuIsa isa, int threads) {
    const std::vector<Part> parts{{i, begin, end}};
    return run_batch(parts, isa, threads);
  }

  struct Part {
    size_t sequence;
    int64_t begin;
    int64_t end;
  };

  /// Several sequences in one packed batch; q, k and v share rows of one wider buffer.
  std::vector<float> run_batch(const std::vector<Part>& parts, CpuIsa isa, int threads) {
    KernelTable kernels;
    fill_cpu_ops(kernels, isa);
    ThreadPool pool(threads);
    const Stream stream{&pool, nullptr};
    const int64_t ld = q_width() + 2 * kv_width() + 5;
    std::vector<float> rows;
    std::vector<SequenceRows> sequences;
    std::vector<std::vector<int32_t>> tables;
    int64_t n = 0;
    size_t last = parts.front().sequence;
    for (const Part& part : parts) {
      for (int64_t t = part.begin; t < part.end; ++t) {
        append(rows, q_[part.sequence], t, q_width());
        append(rows, k_[part.sequence], t, kv_width());
        append(rows, v_[part.sequence], t, kv_width());
        rows.resize(rows.size() + 5, NAN);
      }
      tables.push_back(page_begin_[part.sequence]);
      std::vector<int32_t>& table = tables.back();
      if (cut_tables_ && !table.empty()) {
        table.erase(std::lower_bound(table.begin(), table.end(), part.end), table.end());
        table.push_back(static_cast<int32_t>(part.end));
      }
      sequences.push_back({.row = n,
                           .n_rows = part.end - part.begin,
                           .kv_len = part.end,
                           .pages = pages_[part.sequence].data(),
                           .page_begin = table.empty() ? nullptr : table.data(),
                           .shared_pages = n_shared(last, part.sequence)});
      last = part.sequence;
      n += part.end - part.begin;
    }
    const auto n_sequences = static_cast<int64_t>(sequences.size());
    kernels.kv_write({.k = rows.data() + q_width(),
                      .ldk = ld,
                      .v = rows.data() + q_width() + kv_width(),
                      .ldv = ld,
                      .cache = layer_,
                      .sequences = sequences.data(),
                      .n_sequences = n_sequences},
                     stream);
    std::vector<float> out(static_cast<size_t>(n * q_width()), NAN);
    kernels.paged_attention({.q = rows.data(),
                             .ldq = ld,
                             .n_heads = shape_.n_heads,
                             .cache = layer_,
                             .sequences = sequences.data(),
                             .n_sequences = n_sequences,
                             .scale = scale(),
                             .out = out.data(),
                             .ldo = q_width(),
                             .window = shape_.window},
                            stream);
    return out;
  }

  float scale() const {
    return shape_.scale != 0 ? shape_.scale : 1.0f / std::sqrt(static_cast<float>(shape_.head_dim));
  }

  /// Largest difference of `out`, rows [begin, end) of sequence i, from the reference.
  double error(size_t i, int64_t begin, int64_t end, const float* out) const {
    const int64_t d = shape_.head_dim;
    const int64_t group = shape_.n_heads / shape_.n_kv_heads;
    double worst = 0;
    for (int64_t t = begin; t < end; ++t) {
      const int64_t from = shape_.window > 0 ? std::max<int64_t>(0, t + 1 - shape_.window) : 0;
      for (int64_t h = 0; h < shape_.n_heads; ++h) {
        const int64_t kv = h / group * d;
        const std::vector<double> want =
            ref::attend(&q_[i][static_cast<size_t>(t * q_width() + h * d)], d,
                        {k_[i].data() + kv, kv_width()}, {v_[i].data() + kv, kv_width()}, from,
                        t + 1, static_cast<double>(scale()), shape_.dtype);
        for (int64_t e = 0; e < d; ++e) {
          const double got = out[(t - begin) * q_width() + h * d + e];
          const double difference = std::abs(got - want[static_cast<size_t>(e)]);
          worst = difference <= worst ? worst : difference;  // a NaN is kept
        }
      }
    }
    return worst;
  }

 private:
  static std::vector<int64_t> lengths_of(const std::vector<std::vector<int32_t>>& layouts) {
    std::vector<int64_t> lengths;
    for (const auto& layout : layouts) lengths.push_back(layout.back());
    return lengths;
  }

  PagedCase(const Shape4& shape, const std::vector<int64_t>& lengths,
            const std::vector<std::vector<int32_t>>& layouts)
      : shape_(shape), page_begin_(layouts) {
    std::vector<int64_t> counts;
    int64_t n_pages = 0;
    for (size_t i = 0; i < lengths.size(); ++i) {
      const int64_t full = (lengths[i] + kPageTokens - 1) / kPageTokens;
      counts.push_back(layouts[i].empty() ? full : static_cast<int64_t>(layouts[i].size()) - 1);
      n_pages += counts.back();
    }
    layer_ = {
        .dtype = shape.dtype,
        .n_kv_heads = shape.n_kv_heads,
        .head_dim = shape.head_dim,
        .base = nullptr,
        .page_stride = KvLayer::page_bytes(shape.dtype, shape.n_kv_heads, shape.head_dim) + 64};
    memory_.resize(static_cast<size_t>(n_pages * layer_.page_stride));
    layer_.base = memory_.data();
    reset_cache();
    // Page tables take every other page from the end, so that neighbours are not adjacent.
    int64_t next = 0;
    uint32_t seed = 1;
    for (size_t i = 0; i < lengths.size(); ++i) {
      std::vector<int32_t> pages;
      for (int64_t p = 0; p < counts[i]; ++p, ++next) {
        const int64_t half = (n_pages + 1) / 2;
        pages.push_back(
            static_cast<int32_t>(n_pages - 1 - (next < half ? 2 * next : 2 * (next - half) + 1)));
      }
      pages_.push_back(std::move(pages));
      q_.push_back(ref::random_floats(lengths[i] * q_width(), seed++));
      k_.push_back(ref::random_floats(lengths[i] * kv_width(), seed++));
      v_.push_back(ref::random_floats(lengths[i] * kv_width(), seed++));
    }
  }

  int64_t n_shared(size_t i, size_t other) const {
    if (i == other) return 0;
    const std::vector<int32_t>& pages = pages_[i];
    const std::vector<int32_t>& others = pages_[other];
    return std::mismatch(pages.begin(), pages.end(), others.begin(), others.end()).first -
           pages.begin();
  }

  static void append(std::vector<float>& rows, const std::vector<float>& from, int64_t row,
                     int64_t width) {
    rows.insert(rows.end(), from.begin() + row * width, from.begin() + (row + 1) * width);
  }

  Shape4 shape_;
  KvLayer layer_;
  std::vector<std::byte> memory_;
  std::vector<std::vector<int32_t>> page_begin_;  ///< empty: full pages
  std::vector<std::vector<int32_t>> pages_;
  bool cut_tables_ = false;
  std::vector<std::vector<float>> q_, k_, v_;
};

}  // namespace triptych
