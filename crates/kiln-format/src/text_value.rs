//! The traits of types that are a text of some form.

/// Implements, for a type with a function `as_str`, the traits that are listed: `Display`; `FromStr`, by a function that takes a text
/// and gives the value or this error; `Serialize`, as the text; `Deserialize`, by its `FromStr`.
macro_rules! text_value {
    ($type:ident: $($trait:ident $(($function:ident, $error:ty))?),+) => {
        $(text_value!(@ $trait $type $(, $function, $error)?);)+
    };
    (@ Display $type:ident) => {
        impl ::std::fmt::Display for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
    (@ FromStr $type:ident, $function:ident, $error:ty) => {
        impl ::std::str::FromStr for $type {
            type Err = $error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::$function(text)
            }
        }
    };
    (@ Serialize $type:ident) => {
        impl ::serde::Serialize for $type {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
    (@ Deserialize $type:ident) => {
        impl<'de> ::serde::Deserialize<'de> for $type {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                <String as ::serde::Deserialize>::deserialize(deserializer)?.parse().map_err(::serde::de::Error::custom)
            }
        }
    };
}

pub(crate) use text_value;
