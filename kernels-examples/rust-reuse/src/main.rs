//! Calls both functions and prints what they give. Without a CUDA device the second says so.

use std::process::ExitCode;

unsafe extern "C" {
    /// `y = a * x + y`, for `count` numbers.
    fn saxpy_cpu(count: usize, a: f32, x: *const f32, y: *mut f32);
    /// The same on the first CUDA device; 0, or the runtime's error.
    fn saxpy_cuda(count: usize, a: f32, x: *const f32, y: *mut f32) -> i32;
}

/// What the CUDA runtime answers where there is no driver, or no device.
const NO_DEVICE: [i32; 2] = [35, 100];

fn main() -> ExitCode {
    let x = [1.0, 2.0, 3.0];
    let mut y = [10.0, 20.0, 30.0];
    // SAFETY: both arrays have as many numbers as the function is told.
    unsafe { saxpy_cpu(x.len(), 2.0, x.as_ptr(), y.as_mut_ptr()) };
    println!("cpu: {y:?}");

    let mut y = [10.0, 20.0, 30.0];
    // SAFETY: as above.
    let error = unsafe { saxpy_cuda(x.len(), 2.0, x.as_ptr(), y.as_mut_ptr()) };
    match error {
        0 => println!("cuda: {y:?}"),
        error if NO_DEVICE.contains(&error) => println!("cuda: this machine has no device ({error})"),
        error => {
            println!("cuda: error {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
