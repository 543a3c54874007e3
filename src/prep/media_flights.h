#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "request/request.h"

namespace triptych {

/// Single flight: of those who prepare the same media at the same time one does the work and the
/// others wait for what comes of it. Thread-safe.
class MediaFlights {
 public:
  using Media = std::shared_ptr<const PreparedMedia>;
  using Key = std::pair<uint32_t, MediaId>;  ///< tenant, identity of the pixels
  using Work = std::function<Result<Media>()>;

  /// The result of `work`, or of the same key's work that is already going on. An error goes to all
  /// who wait; so does an exception, as kInternal. Nothing is kept behind the last of them.
  Result<Media> run(const Key& key, const Work& work);

  /// Threads that wait for another's work now.
  int64_t n_waiting() const;

 private:
  struct Flight {
    bool landed = false;
    Result<Media> result = Media();
  };

  mutable std::mutex mutex_;
  std::condition_variable landed_;
  std::map<Key, std::shared_ptr<Flight>> flights_;
  int64_t n_waiting_ = 0;
};

}  // namespace triptych
