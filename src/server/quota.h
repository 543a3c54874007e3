#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "server/access.h"

namespace triptych {

/// Why a key may not ask now, and when it may again.
struct QuotaRefusal {
  std::string reason;
  int retry_ms = 0;
};

class QuotaBook;

/// A request's place in the limits of its key, given back when this ends.
class QuotaTicket {
 public:
  QuotaTicket(QuotaBook& book, Caller caller) : book_(&book), caller_(std::move(caller)) {}
  ~QuotaTicket();
  QuotaTicket(const QuotaTicket&) = delete;
  QuotaTicket& operator=(const QuotaTicket&) = delete;

  /// Takes the bytes of its media. kResourceExhausted when they are more than the key has left.
  Status take_media(uint64_t n_bytes, double now_ms);
  /// What it came to, known only at its end: what is too much is taken from what comes next.
  void spend_tokens(int64_t n_tokens, double now_ms);

 private:
  QuotaBook* book_;
  Caller caller_;
};

/// Counts what each key asks for against its limits. A limit of so many a minute is a bucket that
/// holds as many and is filled at that rate. Keys without limits are not counted. Thread-safe;
/// times are those of steady_ms().
class QuotaBook {
 public:
  struct Entry {
    std::shared_ptr<QuotaTicket> ticket;  ///< null when refused
    std::optional<QuotaRefusal> refusal;
  };
  /// A request of this caller begins. The book outlives the ticket.
  Entry enter(const Caller& caller, double now_ms);

 private:
  friend class QuotaTicket;
  struct Bucket {
    double level = 0;
    double filled_ms = 0;
    bool begun = false;
    /// Brings the level up to date.
    void fill(int64_t per_min, double now_ms);
    /// Until the level is `wanted`.
    int wait_ms(double wanted, int64_t per_min) const;
  };
  struct Account {
    Bucket requests;
    Bucket tokens;
    Bucket media_bytes;
    int64_t open = 0;
  };

  std::mutex mutex_;
  std::map<uint32_t, Account> accounts_;  ///< by tenant
};

}  // namespace triptych
