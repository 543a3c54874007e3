#pragma once

#include <memory>
#include <string>

#include "request/request.h"
#include "text/detokenizer.h"
#include "text/stop_strings.h"

namespace triptych {

/// The text of one answer as its tokens come: whole characters only, ending before a stop string.
class AnswerText {
 public:
  AnswerText(std::shared_ptr<const Tokenizer> tokenizer, const SamplingParams& sampling)
      : detokenizer_(std::move(tokenizer)),
        stops_(sampling.stop),
        min_tokens_(sampling.min_tokens) {}

  /// What the token makes certain; nothing once a stop string was met.
  std::string push(int32_t token) {
    std::string piece = detokenizer_.push(token);
    // Stop strings are looked for behind the text of the first min_tokens, as in vLLM.
    return take(++n_tokens_ > min_tokens_ ? stops_.push(piece) : std::move(piece));
  }
  /// What was still held back. Call once, behind the last token.
  std::string end() {
    std::string piece = take(stops_.push(detokenizer_.flush()));
    return piece + take(stops_.flush());
  }
  bool stopped() const { return stops_.stopped(); }
  const std::string& text() const { return text_; }

 private:
  std::string take(std::string piece) {
    text_ += piece;
    return piece;
  }

  StreamingDetokenizer detokenizer_;
  StopStrings stops_;
  int64_t min_tokens_ = 0;
  int64_t n_tokens_ = 0;
  std::string text_;
};

}  // namespace triptych
