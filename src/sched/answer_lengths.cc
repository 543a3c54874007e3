#include "sched/answer_lengths.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace triptych {
namespace {

constexpr double kPriorAnswers = 2;  // weight, in answers, of "runs to its limit"
constexpr double kMemory = 0.999;    // what is left of an answer's weight after the next one

// First length beyond a bucket.
double bucket_end(size_t b) {
  if (b < 4) return static_cast<double>(b + 1);
  return std::ldexp(static_cast<double>(b % 4 + 5), static_cast<int>(b / 4) - 1);
}

}  // namespace

AnswerLengths::AnswerLengths() {
  for (PerClass& lengths : classes_) {
    lengths.at_risk.fill(0);
    lengths.ended.fill(0);
    refresh(lengths);
  }
}

size_t AnswerLengths::bucket(int64_t n_tokens) {
  const auto n = static_cast<uint64_t>(std::max<int64_t>(n_tokens, 0));
  if (n < 4) return n;
  const auto octave = static_cast<size_t>(std::bit_width(n)) - 1;
  return std::min(4 * (octave - 1) + ((n >> (octave - 2)) & 3), kBuckets - 1);
}

void AnswerLengths::refresh(PerClass& lengths) {
  double alive = 1;
  for (size_t b = 0; b < kBuckets; ++b) {
    alive *= 1 - lengths.ended[b] / (lengths.at_risk[b] + kPriorAnswers);
    lengths.survival[b] = alive;
  }
}

void AnswerLengths::observe(ServiceClass service_class, int64_t n_tokens, bool by_itself) {
  PerClass& lengths = classes_[static_cast<size_t>(service_class)];
  const size_t last = bucket(n_tokens);
  for (size_t b = 0; b < kBuckets; ++b) {
    lengths.at_risk[b] *= kMemory;
    lengths.ended[b] *= kMemory;
    // An answer that was cut off says nothing about the bucket it was cut in.
    if (b < last || (b == last && by_itself)) lengths.at_risk[b] += 1;
  }
  if (by_itself) lengths.ended[last] += 1;
  refresh(lengths);
}

double AnswerLengths::survival(ServiceClass service_class, int64_t n_drawn, int64_t n_more) const {
  if (n_more <= 0) return 1;
  const PerClass& lengths = classes_[static_cast<size_t>(service_class)];
  const double now = lengths.survival[bucket(n_drawn)];
  const double later = lengths.survival[bucket(n_drawn + n_more)];
  return now > 0 ? later / now : 1;
}

double AnswerLengths::mean(ServiceClass service_class, int64_t max_new) const {
  const PerClass& lengths = classes_[static_cast<size_t>(service_class)];
  double sum = 0;
  double begin = 0;
  double alive = 1;
  for (size_t b = 0; b < kBuckets && begin < static_cast<double>(max_new); ++b) {
    const double end = std::min(bucket_end(b), static_cast<double>(max_new));
    sum += (end - begin) * (alive + lengths.survival[b]) / 2;
    alive = lengths.survival[b];
    begin = end;
  }
  return std::max(sum, 1.0);
}

}  // namespace triptych
