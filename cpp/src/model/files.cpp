// Files as a whole: a path and a text come in, a file that is complete goes out. The Python package writes as these do.

#include "model/files.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <random>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#ifdef _WIN32
#include <io.h>
#include <sys/stat.h>
#else
#include <unistd.h>
#endif

namespace halosvm::files {
namespace {

namespace fs = std::filesystem;

/// A call that failed, for the reason in errno.
struct Failure {
  int reason = errno;
};

void require(bool done) {
  if (!done) throw Failure{};
}

struct Close {
  // NOLINTNEXTLINE(cert-err33-c,cppcoreguidelines-owning-memory): what matters was flushed and checked before
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

[[noreturn]] void refuse(const char* what, const std::string& path, std::string reason) {
  if (!reason.empty()) reason[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(reason[0])));
  throw std::runtime_error(std::string(what) + " " + path + ": " + reason);
}

/// Calls \p run, and lets errors of the system name the file that was asked for.
template <class Run>
auto told(const char* what, const std::string& path, const Run& run) {
  try {
    return run();
  } catch (const Failure& failure) {
    refuse(what, path, std::generic_category().message(failure.reason));
  } catch (const fs::filesystem_error& error) {
    refuse(what, path, error.code().message());
  }
}

/// Opens a file that must not be there yet.
File create(const fs::path& path, unsigned mode) {
#ifdef _WIN32
  const int flags = _O_WRONLY | _O_CREAT | _O_EXCL | _O_BINARY | _O_NOINHERIT;
  static_cast<void>(mode);
  const int descriptor = _wopen(path.c_str(), flags, _S_IREAD | _S_IWRITE);
  require(descriptor >= 0);
  File file(_fdopen(descriptor, "wb"));
#else
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-vararg): there is no other open
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  require(descriptor >= 0);
  File file(::fdopen(descriptor, "wb"));
#endif
  require(file != nullptr);
  return file;
}

/// Writes all of it, to the device where that is one of files.
void put(File file, const std::string& text, bool to_device) {
  require(std::fwrite(text.data(), 1, text.size(), file.get()) == text.size());
  require(std::fflush(file.get()) == 0);
#ifdef _WIN32
  require(!to_device || _commit(_fileno(file.get())) == 0);
#else
  require(!to_device || ::fsync(::fileno(file.get())) == 0);
#endif
  require(std::fclose(file.release()) == 0);
}

/// What a path of symbolic links leads to, which need not be there.
fs::path behind_links(fs::path path) {
  constexpr int most = 40;
  for (int i = 0; fs::is_symlink(fs::symlink_status(path)); ++i) {
    if (i == most) throw Failure{ELOOP};
    path = path.parent_path() / fs::read_symlink(path);
  }
  return path;
}

/// How the names of files begin that are written beside one: 50 letters of its name at most, of one to four bytes.
std::string beginning(const fs::path& target) {
  constexpr int most = 50;
  const std::string name = target.filename().string();
  std::size_t end = 0;
  for (int letters = 0; end < name.size(); ++end) {
    if ((static_cast<unsigned char>(name[end]) & 0xC0U) != 0x80U && ++letters > most) break;
  }
  return "." + name.substr(0, end) + ".";
}

/// Removes what writers of the same file have left that were killed long ago.
void clear(const fs::path& folder, const std::string& begin) {
  constexpr auto stale = std::chrono::hours(1);  // no file is written for so long
  std::error_code error;
  const auto now = fs::file_time_type::clock::now();
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const fs::path& path = at->path();
    if (path.filename().string().compare(0, begin.size(), begin) != 0 || path.extension() != ".tmp") continue;
    std::error_code unknown;
    if (!fs::is_regular_file(fs::symlink_status(path, unknown))) continue;
    const auto written = fs::last_write_time(path, unknown);
    if (!unknown && written < now - stale) fs::remove(path, unknown);
  }
}

std::string random_name() {
  constexpr char hexadecimal[] = "0123456789abcdef";
  std::random_device device;
  std::string name;
  for (int i = 0; i < 16; ++i) name += hexadecimal[device() % 16U];
  return name + ".tmp";
}

void replace(const fs::path& target, const std::string& text) {
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  const std::string begin = beginning(target);
  clear(folder, begin);
  const fs::path beside = folder / (begin + random_name());
  const bool replaces = fs::exists(target);
  // NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): perms are flags
  const fs::perms mode = replaces ? fs::status(target).permissions() & fs::perms::all : fs::perms(0666);
  File file = create(beside, static_cast<unsigned>(mode));  // never more, not even while it is written
  try {
    if (replaces) fs::permissions(beside, mode);  // with what the process's mask has taken off
    put(std::move(file), text, true);
    fs::rename(beside, target);
  } catch (...) {
    std::error_code ignored;
    fs::remove(beside, ignored);
    throw;
  }
}

}  // namespace

void write(const std::string& path, const std::string& text) {
  told("cannot write", path, [&] {
    const fs::file_status status = fs::status(path);
    if (fs::is_directory(status)) throw Failure{EISDIR};
    if (fs::exists(status) && !fs::is_regular_file(status)) {
      File file(std::fopen(path.c_str(), "wb"));
      require(file != nullptr);
      put(std::move(file), text, false);
    } else {
      replace(behind_links(path), text);
    }
  });
}

std::string read(const std::string& path) {
  return told("cannot read", path, [&] {
    const File file(std::fopen(path.c_str(), "rb"));
    require(file != nullptr);
    std::string text;
    char part[65536];
    for (std::size_t count = 1; count > 0;) {
      count = std::fread(part, 1, sizeof(part), file.get());
      text.append(part, count);
    }
    require(std::ferror(file.get()) == 0);
    return text;
  });
}

}  // namespace halosvm::files
