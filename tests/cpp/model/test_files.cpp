#include "model/files.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#ifdef __unix__
#include <sys/stat.h>
#endif

namespace files = halosvm::files;
namespace fs = std::filesystem;

namespace {

/// A folder of its own, which ends with the test.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("halosvm_files_" + std::to_string(std::random_device()()))) {
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  auto size() const { return std::distance(fs::directory_iterator(path_), {}); }

 private:
  fs::path path_;
};

template <class Call>
std::string reason_of(const Call& call) {
  try {
    call();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("readers beside writers see a whole file, the one before or the one after") {
  const Folder folder;
  const std::string path = folder / "m.json";
  files::write(path, std::string(100000, 'a'));
  std::atomic<bool> ended{false};
  std::vector<std::thread> writers;
  for (const char letter : {'a', 'b', 'c'}) {
    writers.emplace_back([&, letter] {
      while (!ended) files::write(path, std::string(100000, letter));
    });
  }
  int torn = 0;
  for (int i = 0; i < 300; ++i) {
    const std::string text = files::read(path);
    if (text != std::string(100000, text[0])) ++torn;
  }
  ended = true;
  for (std::thread& writer : writers) writer.join();
  CHECK(torn == 0);
  CHECK(folder.size() == 1);
}

TEST_CASE("a file of a name that could be guessed is neither written to nor removed") {
  const Folder folder;
  files::write(folder / "victim", "as it was");
  fs::create_symlink(folder / "victim", folder / "m.json.tmp");
  files::write(folder / "m.json", "text");
  CHECK(files::read(folder / "m.json") == "text");
  CHECK(files::read(folder / "victim") == "as it was");
  CHECK(folder.size() == 3);
}

TEST_CASE("what a symbolic link points to is replaced and not the link, whether it is there or not") {
  const Folder folder;
  fs::create_directory(folder / "inner");
  fs::create_symlink("inner/m.json", folder / "link");
  fs::create_symlink("link", folder / "chain");
  for (const std::string text : {"first", "second"}) {
    files::write(folder / "chain", text);
    CHECK(fs::is_symlink(folder / "chain"));
    CHECK(fs::is_symlink(folder / "link"));
    CHECK(files::read(folder / "inner/m.json") == text);
  }
  fs::create_symlink("circle", folder / "circle");
  CHECK(reason_of([&] { files::write(folder / "circle", ""); }).find("cannot write " + (folder / "circle: ")) == 0);
}

TEST_CASE("next writer removes what killed ones have left of the same file alone, and not too early") {
  const Folder folder;
  const std::string left = folder / ".m.json.0123456789abcdef.tmp";
  const std::string other = folder / ".o.json.0123456789abcdef.tmp";
  const auto age = [](const std::string& path, std::chrono::minutes minutes) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - minutes);
  };
  std::ofstream(left) << "half";
  std::ofstream(other) << "half";
  age(left, std::chrono::minutes(50));
  age(other, std::chrono::hours(5));
  files::write(folder / "m.json", "text");
  CHECK(fs::exists(left));
  age(left, std::chrono::minutes(70));
  files::write(folder / "m.json", "text");
  CHECK(!fs::exists(left));
  CHECK(fs::exists(other));
}

TEST_CASE("names as long as they may be are written") {
  const Folder folder;
  std::string name(50, 'm');
  for (int i = 0; i < 100; ++i) name += "\xC3\xA9";
  files::write(folder / name, "text");
  CHECK(files::read(folder / name) == "text");
}

TEST_CASE("failures name the file and the reason, and leave the earlier file and nothing else") {
  const Folder folder;
  CHECK(reason_of([&] { files::write(folder / "no/m.json", ""); }) ==
        "cannot write " + (folder / "no/m.json") + ": no such file or directory");
  CHECK(reason_of([&] { files::read(folder / "m.json"); }) ==
        "cannot read " + (folder / "m.json") + ": no such file or directory");
  fs::create_directory(folder / "m.json");
  CHECK(reason_of([&] { files::write(folder / "m.json", ""); }) ==
        "cannot write " + (folder / "m.json") + ": is a directory");
  CHECK(reason_of([&] { files::read(folder / "m.json"); }) ==
        "cannot read " + (folder / "m.json") + ": is a directory");
  CHECK(folder.size() == 1);
}

#ifdef __unix__
TEST_CASE("a file keeps the permissions of the one it replaces") {
  const Folder folder;
  for (const unsigned mode : {0600U, 0640U, 0666U}) {
    std::ofstream(folder / "m.json") << "before";
    fs::permissions(folder / "m.json", fs::perms(mode));
    files::write(folder / "m.json", "after");
    CHECK(fs::status(folder / "m.json").permissions() == fs::perms(mode));
    CHECK(files::read(folder / "m.json") == "after");
  }
}

TEST_CASE("a pipe is written as it is") {
  const Folder folder;
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  std::string seen;
  std::thread reader([&] { seen = files::read(folder / "pipe"); });
  files::write(folder / "pipe", "text");
  reader.join();
  CHECK(seen == "text");
  CHECK(fs::is_fifo(folder / "pipe"));
  CHECK(folder.size() == 1);
}
#endif

#ifdef __linux__
TEST_CASE("a full device is told") {
  CHECK(reason_of([] { files::write("/dev/full", "text"); }) == "cannot write /dev/full: no space left on device");
  CHECK(fs::is_character_file("/dev/full"));
}
#endif
