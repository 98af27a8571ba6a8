//! The devices that the drivers of this machine know. No build needs one; kernels do.

use kiln_ffi::{Api, Device, FfiError};
use kiln_format::BackendName;

use super::{Item, Section, State};

/// Gives the devices that are reached through an interface.
pub type DevicesOf<'a> = dyn Fn(Api) -> Result<Vec<Device>, FfiError> + 'a;

/// The interface through which a backend reaches devices.
fn api_of(backend: BackendName) -> Option<Api> {
    match backend {
        BackendName::Cuda => Some(Api::Cuda),
        BackendName::Rocm => Some(Api::Hip),
        BackendName::Xpu => Some(Api::LevelZero),
        _ => None,
    }
}

/// The devices for `backends`, or for all; none for backends whose devices are not looked for.
pub(super) fn section(backends: &[BackendName], devices: &DevicesOf<'_>) -> Option<Section> {
    let wanted = |api: &Api| backends.is_empty() || backends.iter().any(|backend| api_of(*backend) == Some(*api));
    let apis: Vec<Api> = Api::ALL.into_iter().filter(wanted).collect();
    if apis.is_empty() {
        return None;
    }
    let items = apis.iter().flat_map(|api| items(*api, devices(*api))).collect();
    Some(Section { key: "devices", title: "Devices".to_owned(), items, looked: Vec::new() })
}

fn items(api: Api, devices: Result<Vec<Device>, FfiError>) -> Vec<Item> {
    let without = |state: State, detail: String| vec![Item { detail: Some(detail), ..Item::new(state, api.to_string()) }];
    match devices {
        Ok(devices) if devices.is_empty() => without(State::None, format!("{api}: the driver knows no device")),
        Ok(devices) => devices.into_iter().map(item).collect(),
        // No driver is no fault of a machine without devices.
        Err(FfiError::Load { .. }) => without(State::None, format!("{api}: there is no driver")),
        Err(error) => without(State::Unusable, error.to_string()),
    }
}

fn item(device: Device) -> Item {
    #[expect(clippy::cast_precision_loss, reason = "a size for people")]
    let memory = device.memory.map(|bytes| format!(", {:.1} GiB", bytes as f64 / f64::from(1 << 30)));
    let arch = match device.api {
        Api::Cuda => format!("capability {}", device.arch),
        Api::Hip => device.arch,
        Api::LevelZero => format!("PCI id {}", device.arch),
    };
    let detail = format!("{}, {arch}{}", device.api, memory.unwrap_or_default());
    Item { detail: Some(detail), ..Item::new(State::Found, device.name) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::report::section_text;

    #[test]
    fn what_each_driver_says() {
        let devices = |api: Api| match api {
            Api::Cuda => Ok(vec![Device { api, name: "A".to_owned(), arch: "9.0".to_owned(), memory: Some(3 << 29) }]),
            Api::Hip => Err(FfiError::Load { library: "x".to_owned(), reason: "y".to_owned() }),
            Api::LevelZero => Err(FfiError::Driver { call: "zeInit", reason: "error 0x1".to_owned() }),
        };
        let all = section_text(&section(&[], &devices).unwrap(), false);
        assert_eq!(
            all,
            "Devices\n  found    A: CUDA, capability 9.0, 1.5 GiB\n  none     HIP: there is no driver\n  unusable Level Zero: `zeInit` failed: error 0x1\n"
        );
        assert_eq!(
            section(&[BackendName::Rocm], &|_| Ok(Vec::new())).unwrap().items[0].detail.as_deref(),
            Some("HIP: the driver knows no device")
        );
        assert_eq!(section(&[BackendName::Cpu], &devices), None);
    }
}
