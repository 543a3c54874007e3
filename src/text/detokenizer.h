#pragma once

#include <memory>
#include <string>

#include "text/tokenizer.h"

namespace triptych {

/// Turns generated ids into text piece by piece. No piece ends inside a character, and all pieces
/// together equal `Tokenizer::decode` of all ids. One per answer; not shared by threads.
class StreamingDetokenizer {
 public:
  explicit StreamingDetokenizer(std::shared_ptr<const Tokenizer> tokenizer,
                                bool skip_special = true);
  ~StreamingDetokenizer();
  StreamingDetokenizer(StreamingDetokenizer&&) noexcept;
  StreamingDetokenizer& operator=(StreamingDetokenizer&&) noexcept;

  /// The text that became complete with this id; often empty within a character of several tokens.
  std::string push(TokenId id);
  /// What is still held when the answer ends: U+FFFD for an unfinished character, else nothing.
  std::string flush();

 private:
  struct State;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::unique_ptr<State> state_;
};

}  // namespace triptych
