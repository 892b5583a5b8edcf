// Says what operator-framework's rules say of a bundle, as `operator-sdk bundle validate` does with
// all of its optional suites.
package main

import (
	"fmt"
	"os"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
)

func main() {
	bundle, err := manifests.GetBundleFromDir(os.Args[1])
	if err != nil {
		fmt.Println("unreadable:", err)
		os.Exit(1)
	}
	objects := bundle.ObjectsToValidate()
	for _, object := range bundle.Objects {
		objects = append(objects, object)
	}
	validators := validation.DefaultBundleValidators.WithValidators(
		validation.OperatorHubV2Validator,
		validation.StandardCapabilitiesValidator,
		validation.StandardCategoriesValidator,
		validation.GoodPracticesValidator,
	)
	failed := false
	for _, result := range validators.Validate(objects...) {
		for _, fault := range result.Errors {
			failed = true
			fmt.Println("error:", fault.Error())
		}
		for _, fault := range result.Warnings {
			fmt.Println("warning:", fault.Error())
		}
	}
	if failed {
		os.Exit(1)
	}
}
