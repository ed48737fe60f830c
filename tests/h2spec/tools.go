//go:build tools

// Package tools pins h2spec, which `go build` makes from this folder, and what it depends on.
package tools

import _ "github.com/summerwind/h2spec/cmd/h2spec"
