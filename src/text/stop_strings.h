#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace triptych {

/// Cuts a stream of text at the first stop string. The match that ends first wins; of those that
/// end at the same byte, the longest. The outcome depends on the text alone, never on how it was
/// cut into pieces. One per answer; not shared by threads.
class StopStrings {
 public:
  /// Empty strings are ignored.
  explicit StopStrings(std::vector<std::string> stops);

  /// Takes the next piece and returns the text that is safe to send: all of it up to what may still
  /// become a stop string. After a match it returns nothing more.
  std::string push(std::string_view piece);
  /// At the end of the answer: the text that was held back; nothing after a match.
  std::string flush();

  bool stopped() const { return matched_ != kNone; }
  /// The stop string that matched; empty while none has.
  std::string_view matched() const;

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);
  size_t match_ending_at(size_t end) const;
  size_t held_length() const;

  std::vector<std::string> stops_;
  std::string held_;
  size_t matched_ = kNone;
};

}  // namespace triptych
