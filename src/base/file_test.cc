#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace triptych {
namespace {

using testing::HasSubstr;

class FileTest : public testing::Test {
 protected:
  // A folder a test: ctest runs them side by side.
  FileTest()
      : folder_(testing::TempDir() + "file_test_" +
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~FileTest() override { std::filesystem::remove_all(folder_); }
  std::string at(const std::string& name) const { return folder_ + "/" + name; }

  std::string folder_;
};

TEST_F(FileTest, WritesAndReadsBytes) {
  const std::string bytes("a\0b\xff\n", 5);
  ASSERT_TRUE(write_file(at("f"), bytes).is_ok());
  EXPECT_EQ(*read_file(at("f")), bytes);
  ASSERT_TRUE(write_file(at("f"), "").is_ok());
  EXPECT_EQ(*read_file(at("f")), "");
}

TEST_F(FileTest, MissingFilesAreNamed) {
  const Status s = read_file(at("none")).status();
  EXPECT_EQ(s.code(), StatusCode::kNotFound);
  EXPECT_THAT(s.message(), HasSubstr(at("none")));
  EXPECT_EQ(read_file("").status().code(), StatusCode::kNotFound);
  ASSERT_TRUE(write_file(at("f"), "x").is_ok());
  EXPECT_EQ(read_file(at("f/below")).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(write_file(at("none/f"), "x").code(), StatusCode::kNotFound);
}

TEST_F(FileTest, DirectoriesAreNoFiles) {
  EXPECT_EQ(read_file(folder_).status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(read_file(folder_).status().message(), HasSubstr("is a directory"));
  EXPECT_EQ(MappedFile::open(folder_).status().code(), StatusCode::kInvalidArgument);
  EXPECT_FALSE(write_file(folder_, "x").is_ok());
}

// A named pipe as a picture must be refused at once, not waited for.
TEST_F(FileTest, PipesAreRefusedWithoutWaiting) {
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  EXPECT_EQ(read_file(at("pipe")).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(MappedFile::open(at("pipe")).status().code(), StatusCode::kInvalidArgument);
  EXPECT_FALSE(file_exists(at("pipe")));
}

TEST_F(FileTest, UnreadableFilesArePermissionErrors) {
  if (::geteuid() == 0) GTEST_SKIP() << "root reads everything";
  ASSERT_TRUE(write_file(at("f"), "x").is_ok());
  ASSERT_EQ(::chmod(at("f").c_str(), 0), 0);
  EXPECT_EQ(read_file(at("f")).status().code(), StatusCode::kPermissionDenied);
}

TEST_F(FileTest, TheLimitIsCheckedBeforeReading) {
  ASSERT_TRUE(write_file(at("f"), "12345").is_ok());
  EXPECT_TRUE(read_file(at("f"), 5).is_ok());
  const Status s = read_file(at("f"), 4).status();
  EXPECT_EQ(s.code(), StatusCode::kOutOfRange);
  EXPECT_THAT(s.message(), HasSubstr("5 bytes is over the limit of 4"));
  // A sparse file of 1 TiB takes no space and must take no memory.
  ASSERT_TRUE(write_file(at("big"), "x").is_ok());
  if (::truncate(at("big").c_str(), int64_t{1} << 40) == 0) {
    EXPECT_EQ(read_file(at("big")).status().code(), StatusCode::kOutOfRange);
  }
}

TEST_F(FileTest, ExistenceTellsFilesFromFolders) {
  ASSERT_TRUE(write_file(at("f"), "x").is_ok());
  EXPECT_TRUE(file_exists(at("f")));
  EXPECT_FALSE(file_exists(folder_));
  EXPECT_FALSE(file_exists(at("none")));
  EXPECT_TRUE(directory_exists(folder_));
  EXPECT_FALSE(directory_exists(at("f")));
}

TEST_F(FileTest, MapsAFileAndReadsReleasedPagesAgain) {
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  std::string bytes(3 * page + 10, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7 + i / page);
  ASSERT_TRUE(write_file(at("f"), bytes).is_ok());
  const auto mapped = MappedFile::open(at("f"));
  ASSERT_TRUE(mapped.is_ok()) << mapped.status().message();
  const MappedFile& file = **mapped;
  EXPECT_EQ(file.path(), at("f"));
  const auto same = [&] {
    return file.bytes().size() == bytes.size() &&
           std::equal(file.bytes().begin(), file.bytes().end(),
                      reinterpret_cast<const std::byte*>(bytes.data()));
  };
  EXPECT_TRUE(same());
  file.release(0, bytes.size());
  file.release(1, page);            // no whole page
  file.release(bytes.size(), 100);  // beyond the end
  file.release(page, 100 * bytes.size());
  EXPECT_TRUE(same());
}

TEST_F(FileTest, AMapOutlivesTheNameOfTheFile) {
  ASSERT_TRUE(write_file(at("f"), "abc").is_ok());
  const auto mapped = MappedFile::open(at("f"));
  ASSERT_TRUE(mapped.is_ok());
  std::filesystem::remove(at("f"));
  EXPECT_EQ(static_cast<char>((*mapped)->bytes()[2]), 'c');
}

TEST_F(FileTest, EmptyAndMissingFilesAreNotMapped) {
  ASSERT_TRUE(write_file(at("f"), "").is_ok());
  EXPECT_EQ(MappedFile::open(at("f")).status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(MappedFile::open(at("none")).status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace triptych
