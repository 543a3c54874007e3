#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/spec.h"
#include "models/weight_store.h"
#include "ops/attention.h"
#include "ops/op_context.h"

namespace triptych {

/// The state of one picture between slices of its encoding. Tensors live as long as the picture is
/// in work, so that a tower may stop after any block and go on later.
struct EncodeState {
  Tensor hidden;    ///< [n_positions, hidden_size]
  Tensor features;  ///< [n_features, feature_width]
  int64_t next_block = 0;
};

/// From pixels to features, in slices of blocks. Const after loading.
class VisionTower {
 public:
  virtual ~VisionTower() = default;
  virtual int64_t n_blocks() const = 0;  ///< blocks that must run for the features
  /// pixels [3, H, W] f32; fills the embeddings.
  virtual Status start(const OpContext& ctx, const View& pixels, EncodeState& state) const = 0;
  /// Runs up to `max_blocks` further blocks. Done when state.next_block == n_blocks().
  virtual Status advance(const OpContext& ctx, int64_t max_blocks, EncodeState& state) const = 0;
  virtual size_t workspace_bytes(int n_threads) const = 0;
  virtual OpCost cost() const = 0;  ///< of one picture
};

/// From features [n, feature_width] to embeddings of the decoder [n, hidden_size].
class Projector {
 public:
  virtual ~Projector() = default;
  virtual Status forward(const OpContext& ctx, const View& features, const View& out) const = 0;
  virtual size_t workspace_bytes(int64_t n_rows) const = 0;
  virtual OpCost cost(int64_t n_rows) const = 0;
};

/// One packed step of the decoder: rows of any number of sequences, prefill and decode alike.
struct DecoderBatch {
  View hidden;               ///< [T, D] f32: embeddings in; the residual stream, overwritten
  const int32_t* positions;  ///< [T]
  const SequenceRows* sequences;
  int64_t n_sequences;
  const KvLayer* kv_layers;   ///< [n_layers]
  const int32_t* logit_rows;  ///< rows whose logits are wanted
  int64_t n_logit_rows;
};

class Decoder {
 public:
  virtual ~Decoder() = default;
  /// ids [T] -> out [T, D]
  virtual Status embed(const OpContext& ctx, const int32_t* ids, const View& out) const = 0;
  /// logits [n_logit_rows, vocab_size] f32
  virtual Status forward(const OpContext& ctx, const DecoderBatch& batch,
                         const View& logits) const = 0;
  /// Scratch of a step of so many rows.
  virtual size_t workspace_bytes(int64_t n_rows, int64_t n_logit_rows) const = 0;
  /// Work of `n_rows` rows of one sequence that ends at `kv_len` cached tokens.
  virtual OpCost cost(int64_t n_rows, int64_t kv_len, int64_t n_logit_rows,
                      DType kv_dtype) const = 0;
  virtual DType weight_dtype() const = 0;
};

/// A loaded model: parts and the weights they borrow. Const after loading, shared by sequences.
struct Model {
  ModelSpec spec;
  std::unique_ptr<WeightStore> weights;
  std::unique_ptr<VisionTower> vision_tower;  ///< null for text-only models
  std::unique_ptr<Projector> projector;       ///< null for text-only models
  std::unique_ptr<Decoder> decoder;
  std::vector<std::string> ignored_tensors;  ///< in the checkpoint, but not part of the model
};

}  // namespace triptych
