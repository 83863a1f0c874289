package verbs

import "gormapy/gocore/device"

// Options choose the device, as package device understands it. What is empty New
// chooses; it does not look at the settings.
type Options = device.IBRequest
