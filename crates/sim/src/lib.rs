//! The simulator, its oracle and its scenarios. Test only.
