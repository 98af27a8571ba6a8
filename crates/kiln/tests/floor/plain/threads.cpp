#include "programs.h"

#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

static thread_local std::string of_thread = "tls";

std::string program_threads(int64_t count) {
  Faults faults;
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::shared_mutex shared;
  std::condition_variable changed;
  bool go = false;
  auto value = std::make_shared<int>(5);
  for (int64_t i = 0; i < count; i++) {
    threads.emplace_back([&, value, i] {
      {
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait_for(lock, 5s, [&] { return go; });
      }
      {
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [&] { return go; });
      }
      std::shared_lock<std::shared_mutex> reading(shared);
      of_thread += std::to_string(i);
      sum += *value + static_cast<int64_t>(of_thread.size());
    });
  }
  {
    std::lock_guard<std::mutex> lock(mutex);
    go = true;
  }
  changed.notify_all();
  for (auto &thread : threads) thread.join();
  EXPECT(sum == 9 * count && of_thread == "tls");
  std::timed_mutex timed;
  EXPECT(timed.try_lock_for(5ms));
  std::thread([&] { EXPECT(!timed.try_lock_for(5ms) && !timed.try_lock_until(std::chrono::steady_clock::now() + 5ms)); }).join();
  timed.unlock();
  std::shared_timed_mutex shared_timed;
  EXPECT(shared_timed.try_lock_shared_for(5ms));
  EXPECT(!shared_timed.try_lock_for(5ms));
  shared_timed.unlock_shared();
  std::once_flag once;
  int calls = 0;
  for (int i = 0; i < 2; i++) std::call_once(once, [&] { calls++; });
  EXPECT(calls == 1);
  return faults.text;
}

std::string program_futures() {
  Faults faults;
  auto slow = std::async(std::launch::async, [] {
    std::this_thread::sleep_for(30ms);
    return 5;
  });
  EXPECT(slow.wait_for(1ms) == std::future_status::timeout);
  EXPECT(slow.wait_until(std::chrono::steady_clock::now() + 5s) == std::future_status::ready && slow.get() == 5);
  auto failing = std::async(std::launch::async, []() -> int { throw std::runtime_error("in a thread"); });
  try {
    failing.get();
    EXPECT(!"no exception");
  } catch (const std::runtime_error &error) {
    EXPECT(error.what() == std::string("in a thread"));
  }
  try {
    std::promise<int> broken;
    auto future = broken.get_future();
    { std::promise<int> gone = std::move(broken); }
    future.get();
  } catch (const std::future_error &error) {
    EXPECT(error.code() == std::future_errc::broken_promise && error.code().category() == std::future_category());
  }
#if __cplusplus >= 202002L
  std::jthread stopping([](std::stop_token stop) {
    while (!stop.stop_requested()) std::this_thread::yield();
  });
  stopping.request_stop();
  stopping.join();
  std::latch latch(2);
  std::thread arriving([&] { latch.arrive_and_wait(); });
  latch.arrive_and_wait();
  arriving.join();
  std::counting_semaphore<4> semaphore(0);
  std::thread releasing([&] { semaphore.release(); });
  EXPECT(semaphore.try_acquire_for(60s));
  releasing.join();
  EXPECT(!semaphore.try_acquire_for(5ms));
  std::barrier barrier(2);
  std::thread meeting([&] { barrier.arrive_and_wait(); });
  barrier.arrive_and_wait();
  meeting.join();
  std::atomic<int> waited{0};
  std::thread waking([&] {
    waited = 1;
    waited.notify_all();
  });
  waited.wait(0);
  waking.join();
#endif
  std::shared_ptr<int> shared = std::make_shared<int>(1);
  std::atomic_store(&shared, std::make_shared<int>(9));
  EXPECT(*std::atomic_load(&shared) == 9);
  return faults.text;
}
