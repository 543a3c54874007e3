#include "server/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "base/clock.h"
#include "server/http/test_client.h"

namespace triptych::http {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Response plain(int status, std::string_view reason) {
  return {
      .status = status, .content_type = "text/plain", .headers = {}, .body = std::string(reason)};
}

/// A server whose answers a test makes.
struct Served {
  explicit Served(Handler handler, const ServerLimits& limits = {}, Admission admission = nullptr) {
    auto started =
        Server::start({.port = 0}, limits, {std::move(handler), plain, std::move(admission)});
    EXPECT_TRUE(started.is_ok()) << started.status().message();
    server = std::move(*started);
  }
  std::string ask(std::string_view bytes) const {
    TestClient client(server->port());
    client.send(bytes);
    return client.receive_all();
  }
  std::unique_ptr<Server> server;
};

void echo(Request request, std::shared_ptr<Exchange> exchange) {
  exchange->respond({.content_type = "text/plain",
                     .headers = {{"X-Method", request.method}},
                     .body = request.path + "?" + request.query + " " + request.body});
}

TEST(HttpServer, AnswersWithStatusHeadersAndBody) {
  const Served served(echo);
  const std::string answer = served.ask(post("/a/b?c=d&e", "body"));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("X-Method: POST\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Type: text/plain\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\n\r\n/a/b?c=d&e body"));
}

TEST(HttpServer, KeepsAConnectionForSeveralRequests) {
  const Served served(echo);
  TestClient client(served.server->port());
  for (const char* path : {"/1", "/2", "/3"}) {
    client.send(std::string("GET ") + path + " HTTP/1.1\r\nHost: test\r\n\r\n");
    EXPECT_THAT(client.receive_until("? "), HasSubstr(path));
  }
}

TEST(HttpServer, AnswersRequestsSentAtOnceInTheirOrder) {
  const Served served(echo);
  const std::string answer = served.ask("GET /1 HTTP/1.1\r\nHost: test\r\n\r\n" + get("/2"));
  const size_t first = answer.find("/1?");
  EXPECT_NE(first, std::string::npos) << answer;
  EXPECT_NE(answer.find("/2?", first), std::string::npos) << answer;
}

TEST(HttpServer, AnswersHeadWithoutABody) {
  const Served served(echo);
  const std::string answer =
      served.ask("HEAD /a HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("Content-Length: 4\r\n"));
  EXPECT_THAT(answer, Not(HasSubstr("/a?")));
}

TEST(HttpServer, TakesABodyInChunks) {
  const Served served(echo);
  const std::string answer = served.ask(
      "POST /a HTTP/1.1\r\nHost: test\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nfoo\r\n4\r\nbars\r\n0\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("/a? foobars"));
}

TEST(HttpServer, AsksForABodyThatWaitsForIt) {
  const Served served(echo);
  TestClient client(served.server->port());
  client.send(
      "POST /a HTTP/1.1\r\nHost: test\r\nConnection: close\r\nExpect: 100-continue\r\n"
      "Content-Length: 3\r\n\r\n");
  EXPECT_THAT(client.receive_until("\r\n\r\n"), StartsWith("HTTP/1.1 100 Continue"));
  client.send("foo");
  EXPECT_THAT(client.receive_all(), HasSubstr("/a? foo"));
}

TEST(HttpServer, ALongBodyKeepsNobodyElseWaiting) {
  std::promise<void> release;
  std::shared_future<void> released = release.get_future().share();
  const Served served(
      [&](Request request, std::shared_ptr<Exchange> exchange) {
        if (request.body.size() > 1000) released.wait();
        echo(std::move(request), std::move(exchange));
      },
      {.long_body_bytes = 1000});
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 4; ++i) {  // more than there are threads of any kind
    clients.push_back(std::make_unique<TestClient>(served.server->port()));
    clients.back()->send(post("/long", std::string(2000, 'x')));
  }
  EXPECT_THAT(served.ask(get("/short")), HasSubstr("/short"));
  release.set_value();
  for (const auto& client : clients) EXPECT_THAT(client->receive_all(), HasSubstr("/long"));
}

TEST(HttpServer, StreamsPiecesAsTheyCome) {
  std::promise<std::shared_ptr<Exchange>> given;
  const Served served([&](const Request&, std::shared_ptr<Exchange> exchange) {
    given.set_value(std::move(exchange));
  });
  TestClient client(served.server->port());
  client.send(get("/"));
  std::shared_ptr<Exchange> exchange = given.get_future().get();
  exchange->start_stream({.content_type = "text/event-stream", .headers = {}, .body = {}});
  EXPECT_THAT(client.receive_until("\r\n\r\n"), HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_TRUE(exchange->write("one"));
  EXPECT_EQ(client.receive_until("one\r\n"), "3\r\none\r\n");
  EXPECT_TRUE(exchange->write("three"));
  exchange->finish();
  EXPECT_FALSE(exchange->write("more"));
  EXPECT_EQ(client.receive_all(), "5\r\nthree\r\n0\r\n\r\n");
}

TEST(HttpServer, StreamsToAnOlderClientUntilTheConnectionEnds) {
  const Served served([](const Request&, const std::shared_ptr<Exchange>& exchange) {
    exchange->start_stream({.headers = {}, .body = "a"});
    exchange->write("b");
    exchange->finish();
  });
  const std::string answer = served.ask("GET / HTTP/1.0\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("\r\n\r\nab"));
  EXPECT_THAT(answer, Not(HasSubstr("chunked")));
}

TEST(HttpServer, TellsOfConnectionsAndBodies) {
  struct Counts final : ConnectionObserver {
    void connection_opened() override { ++opened; }
    void connection_closed() override { closed.set_value(); }
    void body_received(uint64_t n_bytes) override { bytes += n_bytes; }
    std::atomic<int> opened = 0;
    std::atomic<uint64_t> bytes = 0;
    std::promise<void> closed;
  } counts;
  double arrived_ms = 0;
  const auto handler = [&](Request request, std::shared_ptr<Exchange> exchange) {
    arrived_ms = request.arrived_ms;
    echo(std::move(request), std::move(exchange));
  };
  const double start_ms = steady_ms();
  const auto server =
      Server::start({.port = 0}, {}, {.handler = handler, .refusal = plain, .observer = &counts})
          .value();
  TestClient client(server->port());
  client.send(post("/", std::string(100000, 'x')));
  client.receive_all();
  client.close();
  ASSERT_EQ(counts.closed.get_future().wait_for(std::chrono::seconds(10)),
            std::future_status::ready);
  EXPECT_EQ(counts.opened, 1);
  EXPECT_EQ(counts.bytes, 100000u);
  EXPECT_GE(arrived_ms, start_ms);
  EXPECT_LE(arrived_ms, steady_ms());
}

TEST(HttpServer, AnUnansweredRequestGetsAnError) {
  const Served served([](const Request&, const std::shared_ptr<Exchange>&) {});
  EXPECT_THAT(served.ask(get("/")), StartsWith("HTTP/1.1 500 "));
  const Served throwing([](const Request&, const std::shared_ptr<Exchange>&) { throw 1; });
  EXPECT_THAT(throwing.ask(get("/")), StartsWith("HTTP/1.1 500 "));
}

TEST(HttpServer, AStreamThatIsDroppedDoesNotLookWhole) {
  const Served served([](const Request&, const std::shared_ptr<Exchange>& exchange) {
    exchange->start_stream({.headers = {}, .body = {}});
    exchange->write("half");
  });
  EXPECT_THAT(served.ask(get("/")), Not(HasSubstr("0\r\n\r\n")));
}

TEST(HttpServer, TellsWhenAClientHasGone) {
  std::promise<void> gone;
  std::promise<std::shared_ptr<Exchange>> given;
  const Served served([&](const Request&, std::shared_ptr<Exchange> exchange) {
    exchange->on_gone([&] { gone.set_value(); });
    given.set_value(std::move(exchange));
  });
  auto client = std::make_unique<TestClient>(served.server->port());
  client->send(get("/"));
  const std::shared_ptr<Exchange> exchange = given.get_future().get();
  client.reset();
  ASSERT_EQ(gone.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
  exchange->start_stream({.headers = {}, .body = {}});
  EXPECT_FALSE(exchange->write("late"));
}

TEST(HttpServer, AnAnswerThatHasEndedIsNotGone) {
  std::atomic<bool> gone = false;
  const Served served([&](const Request&, const std::shared_ptr<Exchange>& exchange) {
    exchange->on_gone([&] { gone = true; });
    exchange->respond({.headers = {}, .body = "a"});
  });
  EXPECT_THAT(served.ask(get("/")), HasSubstr("\r\n\r\na"));
  EXPECT_TRUE(served.server->drain(std::chrono::seconds(10)));
  EXPECT_FALSE(gone);
}

TEST(HttpServer, AClientThatDoesNotReadIsCutOff) {
  std::promise<std::shared_ptr<Exchange>> given;
  const Served served(
      [&](const Request&, std::shared_ptr<Exchange> exchange) {
        given.set_value(std::move(exchange));
      },
      {.stream_backlog_bytes = 1 << 16});
  TestClient client(served.server->port());
  client.send(get("/"));
  const std::shared_ptr<Exchange> exchange = given.get_future().get();
  exchange->start_stream({.headers = {}, .body = {}});
  const std::string piece(1 << 15, 'x');
  bool taken = true;
  for (int i = 0; i < 10000 && taken; ++i) taken = exchange->write(piece);
  EXPECT_FALSE(taken);
}

TEST(HttpServer, RefusesWhatIsTooLongBeforeItIsRead) {
  const Served served(echo, {.header_bytes = 1000, .body_bytes = 1000});
  EXPECT_THAT(served.ask(post("/", std::string(1000, 'x'))), StartsWith("HTTP/1.1 200 "));
  const std::string body =
      served.ask("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 1001\r\n\r\n");
  EXPECT_THAT(body, StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(body, HasSubstr("longer than 1000 bytes"));
  EXPECT_THAT(served.ask("POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n"
                         "3e9\r\n" +
                         std::string(1001, 'x')),
              StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(served.ask("GET / HTTP/1.1\r\nA: " + std::string(1000, 'x') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 431 "));
}

TEST(HttpServer, RefusesByTheHeadWithoutReadingTheBody) {
  const Served served(echo, {}, [](const Request& head) -> std::optional<Response> {
    if (head.path == "/throw") throw 1;
    if (head.path == "/in") return std::nullopt;
    return plain(401, "not you");
  });
  EXPECT_THAT(served.ask("POST /out HTTP/1.1\r\nHost: test\r\nContent-Length: 9999999\r\n\r\n"),
              StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(served.ask(post("/throw", "x")), StartsWith("HTTP/1.1 500 "));
  EXPECT_THAT(served.ask(post("/in", "x")), HasSubstr("/in? x"));
  // Without a body the connection goes on.
  const std::string both = served.ask("GET /out HTTP/1.1\r\nHost: test\r\n\r\n" + get("/in"));
  EXPECT_THAT(both, StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(both, HasSubstr("/in?"));
}

TEST(HttpServer, BodiesOfAllClientsTogetherAreBounded) {
  const Served served(echo, {.body_bytes = 1000, .all_bodies_bytes = 1500});
  TestClient slow(served.server->port());
  slow.send("POST / HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Length: 1000\r\n\r\n");
  // The slow one's share is taken when its headers have been read.
  std::string answer;
  for (int i = 0; i < 100 && !answer.starts_with("HTTP/1.1 503 "); ++i) {
    answer = served.ask(post("/", std::string(600, 'x')));
    std::this_thread::sleep_for(milliseconds(5));
  }
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 503 "));
  slow.send(std::string(1000, 'y'));
  EXPECT_THAT(slow.receive_all(), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(served.ask(post("/", std::string(600, 'x'))), StartsWith("HTTP/1.1 200 "));
}

TEST(HttpServer, RefusesWhatIsNoHttp) {
  const Served served(echo);
  for (const char* bytes :
       {"hello there\r\n\r\n", "GET / HTTP/9.9\r\n\r\n",
        "GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "GET / HTTP/1.1\r\nno colon\r\n\r\n"}) {
    EXPECT_THAT(served.ask(bytes), StartsWith("HTTP/1.1 400 ")) << bytes;
  }
  EXPECT_THAT(served.ask(get("/after")), HasSubstr("/after"));
}

TEST(HttpServer, ASlowClientIsCutOff) {
  const Served served(echo, {.header_time = milliseconds(50),
                             .idle_time = milliseconds(50),
                             .body_grace = milliseconds(50)});
  for (const char* bytes : {"", "GET / HT", "POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nx"}) {
    EXPECT_EQ(served.ask(bytes), "") << bytes;
  }
}

TEST(HttpServer, DrainingLetsAnswersEndAndTakesNoMore) {
  std::promise<std::shared_ptr<Exchange>> given;
  const Served served([&](const Request&, std::shared_ptr<Exchange> exchange) {
    given.set_value(std::move(exchange));
  });
  const uint16_t port = served.server->port();
  const TestClient idle(port);
  TestClient client(port);
  client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
  std::shared_ptr<Exchange> exchange = given.get_future().get();
  EXPECT_FALSE(served.server->drain(milliseconds(20)));
  EXPECT_FALSE(TestClient(port).connected());
  exchange->respond({.headers = {}, .body = "late"});
  EXPECT_THAT(client.receive_all(), HasSubstr("\r\n\r\nlate"));
  EXPECT_TRUE(served.server->drain(std::chrono::seconds(10)));
}

TEST(HttpServer, EndsWithAnswersStillOut) {
  std::promise<std::shared_ptr<Exchange>> given;
  std::atomic<bool> gone = false;
  std::shared_ptr<Exchange> exchange;
  {
    const Served served([&](const Request&, std::shared_ptr<Exchange> given_exchange) {
      given_exchange->on_gone([&] { gone = true; });
      given.set_value(std::move(given_exchange));
    });
    TestClient client(served.server->port());
    client.send(get("/"));
    exchange = given.get_future().get();
  }
  EXPECT_TRUE(gone);
  exchange->respond({.headers = {}, .body = "nobody reads it"});
}

TEST(HttpServer, SaysWhyItCannotListen) {
  const Served served(echo);
  const auto start = [&](const std::string& host, uint16_t port) {
    return Server::start({.host = host, .port = port}, {}, {echo, plain}).status();
  };
  EXPECT_EQ(start("localhost", 0).code(), StatusCode::kInvalidArgument);
  const Status taken = start("127.0.0.1", served.server->port());
  EXPECT_EQ(taken.code(), StatusCode::kUnavailable);
  EXPECT_THAT(taken.message(), HasSubstr("port"));
}

}  // namespace
}  // namespace triptych::http
