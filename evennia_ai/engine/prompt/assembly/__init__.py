"""The assembly: how texts become messages where SillyTavern does it in another way than this
engine."""
