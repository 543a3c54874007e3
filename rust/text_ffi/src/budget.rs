//! Runs foreign programs (chat templates) with a hard end: whatever they do, the caller gets an
//! answer in time and memory stays bounded.
//!
//! The engine counts instructions, but one instruction may double a string or walk a huge one, so
//! counting alone bounds neither memory nor time. The work therefore runs on a thread of its own whose
//! allocations are counted. A thread that runs over is given up: its next allocation never returns,
//! which is the one safe way to stop it from inside an allocator (returning null would abort the
//! process, unwinding is not allowed). The owner must not run that program again, so at most one
//! thread and one budget of memory is lost for each hostile template.

use crate::abi::{contained, Failure, INTERNAL, LIMIT};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{sync_channel, RecvTimeoutError};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// What the caller and the working thread both see.
#[derive(Default)]
struct Shared {
    given_up: AtomicBool,
    out_of_memory: AtomicBool,
    cpu_clock: OnceLock<libc::clockid_t>,
}

impl Shared {
    /// Remembers the calling thread's clock.
    fn start_clock(&self) {
        let mut id = 0;
        // SAFETY: the calling thread is alive, and `id` is a place for the result.
        if unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &mut id) } == 0 {
            let _ = self.cpu_clock.set(id);
        }
    }

    /// Time that the thread whose clock this is has spent computing; zero before it began and once
    /// it has ended.
    fn cpu_time(&self) -> Duration {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        match self.cpu_clock.get() {
            // SAFETY: the clock of a thread that has ended is refused, not undefined.
            Some(&id) if unsafe { libc::clock_gettime(id, &mut now) } == 0 => {
                Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
            }
            _ => Duration::ZERO,
        }
    }
}

const UNLIMITED: i64 = i64::MAX;

thread_local! {
    static BYTES_LEFT: Cell<i64> = const { Cell::new(UNLIMITED) };
    static SHARED: Cell<*const Shared> = const { Cell::new(std::ptr::null()) };
}

struct CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Takes `grown` bytes from this thread's budget; does not return when the thread has been given up.
#[inline]
fn charge(grown: i64) {
    BYTES_LEFT.with(|left| {
        let before = left.get();
        if before == UNLIMITED {
            return;
        }
        left.set(before - grown);
        if grown > 0 {
            let shared = SHARED.with(|s| s.get());
            // SAFETY: run_limited keeps Shared alive as long as the budget is set.
            let shared = unsafe { &*shared };
            if before < grown {
                shared.out_of_memory.store(true, Ordering::Release);
            } else if !shared.given_up.load(Ordering::Acquire) {
                return;
            }
            left.set(UNLIMITED);
            loop {
                std::thread::sleep(Duration::from_secs(3600));
            }
        }
    });
}

// SAFETY: every call is handed to the system allocator unchanged.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        charge(layout.size() as i64);
        System.alloc(layout)
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        charge(layout.size() as i64);
        System.alloc_zeroed(layout)
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        charge(-(layout.size() as i64));
        System.dealloc(pointer, layout)
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        charge(size as i64 - layout.size() as i64);
        System.realloc(pointer, layout, size)
    }
}

/// Room for the deepest nesting of values that the instruction budget can build; only touched pages
/// cost memory.
const STACK_BYTES: usize = 256 << 20;

/// The work may compute for `time`. Where other work takes the cores away it has this many times as
/// long by the clock on the wall: a busy machine must not make a good template look like a bad one.
const WALL_FACTOR: u32 = 10;

pub struct Limits {
    pub bytes: u64,
    pub time: Duration,
}

/// How `run_limited` ended when it has no result of the work.
pub enum Overrun {
    /// The work was given up and must not be run again.
    GivenUp(Failure),
    /// The work ended by itself, with an error.
    Failed(Failure),
}

/// Runs `work` on its own thread within `limits`.
pub fn run_limited<T: Send + 'static>(
    limits: Limits,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Overrun> {
    let shared = Arc::new(Shared::default());
    let (sender, receiver) = sync_channel(1);
    let theirs = shared.clone();
    let deadline = Instant::now() + WALL_FACTOR * limits.time;
    let pause = (limits.time / 4).clamp(Duration::from_millis(1), Duration::from_millis(10));
    let worker = std::thread::Builder::new()
        .name("template".into())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            theirs.start_clock();
            SHARED.with(|s| s.set(Arc::as_ptr(&theirs)));
            BYTES_LEFT.with(|left| left.set(limits.bytes as i64));
            let result = contained(work);
            BYTES_LEFT.with(|left| left.set(UNLIMITED));
            let _ = sender.send(());
            result
        })
        .map_err(|e| Overrun::Failed(Failure::new(INTERNAL, format!("cannot start a thread: {e}"))))?;
    loop {
        match receiver.recv_timeout(pause) {
            // The result comes through join: only that hand-over is visible to thread sanitizers,
            // and the thread's stack is given back before the next one starts.
            Ok(()) | Err(RecvTimeoutError::Disconnected) => {
                let ended = |_| Err(Failure::new(INTERNAL, "the template's thread ended early"));
                return worker.join().unwrap_or_else(ended).map_err(Overrun::Failed);
            }
            Err(RecvTimeoutError::Timeout) => {
                let text = if shared.out_of_memory.load(Ordering::Acquire) {
                    format!("needs more than {} MiB of memory", limits.bytes >> 20)
                } else if shared.cpu_time() >= limits.time || Instant::now() >= deadline {
                    format!("takes longer than {:.1} s", limits.time.as_secs_f64())
                } else {
                    continue;
                };
                shared.given_up.store(true, Ordering::Release);
                return Err(Overrun::GivenUp(Failure::new(LIMIT, text)));
            }
        }
    }
}
