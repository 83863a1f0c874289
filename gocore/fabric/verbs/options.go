package verbs

import "gormapy/gocore/device"

// Options choose the device, see package device. New chooses where a field is empty. It
// does not read the settings.
type Options = device.IBRequest
