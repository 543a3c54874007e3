# Third-party libraries, all from the distribution's packages (docs/dependencies.md).
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(spdlog REQUIRED IMPORTED_TARGET spdlog)
pkg_check_modules(png REQUIRED IMPORTED_TARGET libpng)
pkg_check_modules(webp REQUIRED IMPORTED_TARGET libwebp libwebpdemux)
pkg_check_modules(hwy REQUIRED IMPORTED_TARGET libhwy)
find_library(GIF_LIBRARY gif REQUIRED)
find_package(JPEG REQUIRED)
find_package(ZLIB REQUIRED)  # tests and benchmarks
find_package(CLI11 REQUIRED)
find_package(Boost 1.81 REQUIRED)  # headers: Asio and Beast
find_package(OpenSSL 3.0 REQUIRED)
if(TRIPTYCH_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
